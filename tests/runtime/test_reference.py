"""Binaries that tt-mlir's own compiler wrote. PyTorch's float32 results are expected.

Tolerances are relative to the largest magnitude of the expected result. For some ops, the reference compiler has a
workaround that converts to bf16 and back, so the results of those programs are only as exact as bf16.
"""

import ctypes
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from benchmarks import reference
from tt_torch.errors import UnsupportedBinaryError
from tt_torch.runtime import Binary, Device, Executable

DATA = Path(__file__).parents[1] / "data" / "runtime"
FLOAT32, BFLOAT16 = 2e-6, 4e-3
THROUGH_BFLOAT16 = {"avgpool", "conv3d", "embedding", "flip", "gather"}
THROUGH_BFLOAT16 |= {"index_select", "mul_bf16", "red_prod", "sort", "topk"}
NAMES = sorted(path.stem for path in DATA.glob("*.ttnn"))


def load(name, allow_host_code=True):
    tensors = load_file(DATA / f"{name}.safetensors")
    inputs = [tensors[f"in{i}"] for i in range(len(tensors)) if f"in{i}" in tensors]
    outputs = [tensors[f"out{i}"] for i in range(len(tensors)) if f"out{i}" in tensors]
    device = Device(allow_host_code=allow_host_code)
    return Executable(Binary.load(DATA / f"{name}.ttnn"), device=device), inputs, outputs


def check(results, expected, tolerance):
    for got, want in zip(results, expected, strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        if not want.is_floating_point():
            assert torch.equal(got, want)
            continue
        error = (got.double() - want.double()).abs().max() / max(1.0, want.abs().max())
        assert error <= tolerance


@pytest.mark.parametrize("name", NAMES)
def test_reference_program(name):
    executable, inputs, expected = load(name)
    tolerance = BFLOAT16 if name in THROUGH_BFLOAT16 else FLOAT32
    dtypes = [tensor.dtype for tensor in expected]
    for resident in ((), range(len(inputs)), range(len(inputs))):
        check(executable(inputs, resident, dtypes), expected, tolerance)


@pytest.mark.parametrize(("name", "rounded"), [("bmm", False), ("avgpool", True)])
def test_the_benchmark_judges_reference_programs(name, rounded):
    good, said = reference.check_op(DATA / f"{name}.ttnn")
    assert good and said.endswith("bf16") == rounded


def test_host_code_runs_only_on_request():
    with pytest.raises(UnsupportedBinaryError, match=r"CpuOp.*allow_host_code"):
        load("gather", allow_host_code=False)


class Mallinfo2(ctypes.Structure):
    """From malloc.h of the C library."""

    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
    )]  # fmt: skip


def test_host_code_leaks_no_memory():
    """A host function returns memory that its caller frees."""
    used = ctypes.CDLL(None).mallinfo2
    used.restype = Mallinfo2
    executable, inputs, _ = load("gather")
    sizes = []
    for _ in range(4):
        for _ in range(100):
            executable.set_callback(None)  # plans the program again, so its constant is computed again
            executable(inputs)
        sizes.append(used().uordblks)
    assert sizes[-1] - sizes[0] < 16 * 300  # a call that leaks leaves at least one block of 32 bytes

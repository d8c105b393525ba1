"""Tensors as the arrays that the ttnn package takes; options of a device, and its end."""

from __future__ import annotations

import atexit
import importlib.util
import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch

from tt_torch.codegen import device
from tt_torch.codegen.arrays import to_array
from tt_torch.codegen.device import TtnnDevice
from tt_torch.codegen.program import Tensor
from tt_torch.errors import DeviceError, InputDtypeError

ARRAYS = {
    "Float32": np.float32, "BFloat16": np.float32, "BFP_BFloat8": np.float32, "BFP_BFloat4": np.float32,
    "Int32": np.int32, "UInt32": np.uint32, "UInt16": np.uint16, "UInt8": np.uint8,
}  # fmt: skip
FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
INTEGERS = (torch.int32, torch.int64, torch.int16, torch.uint8)
COMPLEX = (torch.complex64, torch.complex128)


def described(dtype: str) -> Tensor:
    return Tensor("x", [2, 2], dtype, "RowMajor", None)


@pytest.mark.parametrize("dtype", ARRAYS)
def test_which_tensors_a_type_takes(dtype: str) -> None:
    taken = FLOATS if ARRAYS[dtype] is np.float32 else INTEGERS
    for given in (*taken, torch.bool):
        array = to_array(described(dtype), torch.tensor([[0, 1], [1, 0]]).to(given).T)
        assert array.dtype == ARRAYS[dtype] and array.flags["C_CONTIGUOUS"]
        assert array.tolist() == [[0, 1], [1, 0]]
    for given in {*FLOATS, *INTEGERS, *COMPLEX} - {*taken}:
        with pytest.raises(InputDtypeError, match=f"the third: got {given}, expected {dtype}"):
            to_array(described(dtype), torch.ones(2, 2, dtype=given), "the third")


def test_only_bfloat16_is_rounded() -> None:
    x = torch.tensor([[1 + 2**-10, -3.3], [0.1, 2**-20]], requires_grad=True)
    for dtype, negated in itertools.product(ARRAYS, (False, True)):
        if ARRAYS[dtype] is np.float32:
            given = torch._neg_view(x) if negated else x
            expected = (-x if negated else x).detach()
            rounded = expected.bfloat16().float() if dtype == "BFloat16" else expected
            assert np.array_equal(to_array(described(dtype), given), rounded.numpy())


def test_a_device_is_opened_with_its_options() -> None:
    options = {
        "mesh_shape": (1, 1),
        "physical_device_ids": [],
        "num_command_queues": 1,
        "l1_small_size": 32768,
        "program_cache": True,
        "enable_trace": False,
        "trace_region_size": 0,
        "fabric": False,
    }
    assert TtnnDevice()._options == options
    given = TtnnDevice("blackhole", [2, 4], [3, 5], 2, 0, True, "python", 7.5, True, 1 << 20, True)
    assert given._options == {
        "mesh_shape": (2, 4),
        "physical_device_ids": [3, 5],
        "num_command_queues": 2,
        "l1_small_size": 0,
        "program_cache": True,
        "enable_trace": True,
        "trace_region_size": 1 << 20,
        "fabric": True,
    }
    assert (given.arch, given._python, given._timeout) == ("blackhole", "python", 7.5)
    with pytest.raises(DeviceError, match="enable_program_cache"):
        TtnnDevice(enable_program_cache=False, enable_trace=True)


def test_open_devices_are_closed_when_python_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    at_end: list[Callable[[], None]] = []
    monkeypatch.setattr(atexit, "register", lambda function: at_end.append(function) or function)
    spec = importlib.util.spec_from_file_location("tt_torch.codegen.device_again", device.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    opened = [module.TtnnDevice(), module.TtnnDevice()]
    assert [d.is_open for d in opened] == [True, True]
    (close,) = at_end
    close()
    assert [d.is_open for d in opened] == [False, False]

"""`tt_torch.kernel`: results against eager PyTorch, the errors, files, and the memory of the device."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from extended import new_op
from forked import Server

import tt_torch
from tt_torch.errors import ExtensionError, KernelError
from tt_torch.runtime import Device, default_device
from tt_torch.wire.decode import decode
from tt_torch.wire.facts import ops

f32 = torch.float32
ON_DEVICE = {"fallback": "error"}


def compiled(function, **options):
    torch._dynamo.reset()
    return torch.compile(function, backend=tt_torch.backend, options=ON_DEVICE | options)


def agrees(function, *inputs):
    torch.testing.assert_close(compiled(function)(*inputs), function(*inputs))


def full_name(op):
    return f"{str(op).replace('.', '::')}.default"


def op_with_kernel(kernel, signature="(Tensor x) -> Tensor", function=lambda x: x * 2, **options):
    op = new_op(signature, function)
    tt_torch.kernel(op, **options)(kernel)
    return op


# --- results ------------------------------------------------------------------------------------


def test_a_kernel_runs_on_the_device_between_other_ops() -> None:
    calls = []

    def roll(x, shift, *, dim=0):
        calls.append((x.dtype, shift, dim))
        return torch.roll(x, shift, dim)

    op = op_with_kernel(roll, "(Tensor x, int shift, *, int dim=0) -> Tensor", lambda x, *_, **__: torch.empty_like(x))
    run = compiled(lambda x: op(x * 2, -1, dim=1).relu() @ x.T)
    x = torch.randn(5, 70)
    for _ in range(2):
        torch.testing.assert_close(run(x), torch.roll(x * 2, -1, 1).relu() @ x.T, rtol=1e-5, atol=1e-5)
    assert calls == [(f32, -1, 1)] * 2


@pytest.mark.parametrize(
    "dtype", [f32, torch.bfloat16, torch.float16, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
)
@pytest.mark.parametrize("shape", [(), (3,), (33, 2), (2, 1, 40)])
def test_the_kernel_sees_the_dtypes_of_the_user(dtype, shape) -> None:
    seen = []

    def flipped(x):
        seen.append(x.dtype)
        return x.flip(list(range(x.dim()))), x != 0

    op = op_with_kernel(flipped, "(Tensor x) -> (Tensor, Tensor)", flipped)
    x = torch.randint(0, 100, shape).to(dtype)
    expected = flipped(x)
    for found, wanted in zip(compiled(lambda x: op(x))(x), expected, strict=True):
        assert found.dtype == wanted.dtype and found.equal(wanted)
    assert set(seen) == {dtype}


def test_float64_is_float32_on_the_device() -> None:
    op = op_with_kernel(lambda x: x + 1)
    with pytest.warns(UserWarning, match="float64 is computed in float32"):
        found = compiled(lambda x: op(x))(torch.tensor([1e-12], dtype=torch.float64))
    assert found.equal(torch.tensor([1.0], dtype=torch.float64))


def test_every_kind_of_argument_arrives() -> None:
    seen = []

    def kernel(x, y, zs, n, k, flag, mode, sizes, *, dtype, last):
        seen.append((y, n, k, flag, mode, sizes, dtype, last))
        return zs[1] - x

    op = op_with_kernel(
        kernel,
        "(Tensor x, Tensor? y, Tensor[] zs, int n, float k, bool flag, str mode, int[] sizes, *, "
        "ScalarType? dtype=None, Device? last=None) -> Tensor",
        lambda x, y, zs, *_, **__: zs[1] - x,
    )
    text = 'a "quoted" \n\u00e4 \\ name {"tensor": "float32"} '
    agrees(lambda x, y: op(x, None, [x, y], 3, float("-inf"), False, text, [], dtype=f32), *torch.randn(2, 3, 5))
    assert seen == [(None, 3, float("-inf"), False, text, [], f32, None)]


def test_equal_calls_and_unused_results() -> None:
    op = op_with_kernel(
        lambda x, n: (x + n, x - n), "(Tensor x, int n) -> (Tensor, Tensor)", lambda x, n: (x + n, x - n)
    )
    agrees(lambda x: op(x, 1)[0] * op(x, 2)[1] + op(x, 1)[1], torch.randn(4, 4))


def test_a_kernel_of_weights_is_computed_once_and_again_after_a_change() -> None:
    calls = []
    op = op_with_kernel(lambda w: calls.append(1) or w.t().clone(), function=lambda w: w.t().clone())
    layer = torch.nn.Linear(3, 3, bias=False)
    run = compiled(lambda x: torch.mm(x, op(layer.weight)))
    x = torch.randn(2, 3)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(run(x), x @ layer.weight.t())
        assert len(calls) == 1
        layer.weight.mul_(3)
        torch.testing.assert_close(run(x), x @ layer.weight.t())
    assert len(calls) == 2


def test_a_new_kernel_never_gets_the_cached_result_of_the_old_one() -> None:
    op = new_op("(Tensor x) -> Tensor", lambda x: x * 2)
    weight = torch.nn.Parameter(torch.ones(4))
    for factor in (2.0, 3.0):
        tt_torch.kernel(op)(lambda x, k=factor: x * k)
        with torch.no_grad():
            found = compiled(lambda x: x + op(weight))(torch.zeros(4))
        assert found.equal(torch.full((4,), factor))


def test_gradients_are_those_that_the_user_registered() -> None:
    op = op_with_kernel(lambda x: x * 2)
    torch.library.register_autograd(str(op).replace(".", "::"), lambda ctx, g: g * 7)
    x = torch.randn(3, requires_grad=True)
    compiled(lambda x: op(x).sum())(x).backward()
    assert x.grad.equal(torch.full((3,), 7.0))


def test_a_kernel_may_use_all_of_pytorch() -> None:
    """The kernel computes a gradient, and it runs another compiled program."""
    inner = torch.compile(lambda x: x * x, backend=tt_torch.backend)

    def kernel(x):
        with torch.enable_grad():
            y = x.clone().requires_grad_()
            (gradient,) = torch.autograd.grad((y**3).sum(), y)
        return gradient + inner(x)

    op = op_with_kernel(kernel, function=lambda x: 4 * x * x)
    agrees(lambda x: op(x) + 1, torch.randn(3))


def test_bfloat16_option_rounds_what_the_kernel_reads() -> None:
    seen = []
    op = op_with_kernel(lambda x: seen.append(x) or x + 0)
    compiled(lambda x: op(x), dtype="bf16")(torch.tensor([1 + 2**-10]))
    assert seen[0].dtype == f32 and seen[0].item() == 1.0


def test_inputs_on_tt() -> None:
    from tt_torch.device import tt  # noqa: F401  (registers the device)

    op = op_with_kernel(lambda x: x * 2)
    x = torch.randn(2, 3)
    assert compiled(lambda x: op(x) + 1)(x.to("tt")).cpu().equal(x * 2 + 1)


# --- what a kernel must not do ------------------------------------------------------------------


def failure(kernel, function=lambda x: x * 2, signature="(Tensor x) -> Tensor"):
    op = op_with_kernel(kernel, signature, function)
    x = torch.ones(2, 3)
    kept = x.clone()
    with pytest.raises(KernelError) as error:
        compiled(lambda x: op(x))(x)
    assert x.equal(kept)
    assert str(error.value).startswith(f"{full_name(op)} at {__file__}:{failure.__code__.co_firstlineno + 5} ")
    return error.value


def fill(x):
    x.zero_()
    return x.clone()


def fill_by_numpy(x):
    x.numpy()[0, 0] = np.nan
    return x * 2


RETURNS = "torch.float32 of shape [2, 3]"


@pytest.mark.parametrize(
    ("kernel", "problem"),
    [
        (lambda x: x[0], f"returned torch.float32 of shape [3], expected {RETURNS}"),
        (lambda x: x.double(), f"returned torch.float64 of shape [2, 3], expected {RETURNS}"),
        (lambda x: x.to_sparse(), f"of shape [2, 3] (torch.sparse_coo on cpu), expected {RETURNS}"),
        (lambda x: x.to("meta"), f"of shape [2, 3] (torch.strided on meta), expected {RETURNS}"),
        (lambda x: None, f"returned NoneType, expected {RETURNS}"),
        (lambda x: x.numpy(), f"returned ndarray, expected {RETURNS}"),
        (lambda x: (x, x), f"returned {RETURNS}, {RETURNS}, expected {RETURNS}"),
        (lambda x: (), f"returned , expected {RETURNS}"),
        (fill, "its kernel wrote to its tensor 0; it must return new tensors"),
        (fill_by_numpy, "its kernel wrote to its tensor 0; it must return new tensors"),
        (lambda x: x.resize_(1) * 2, "its kernel wrote to its tensor 0"),
        (lambda: None, "TypeError: "),
    ],
)
def test_a_wrong_kernel_is_an_error_that_names_the_op_and_the_line(kernel, problem) -> None:
    assert problem in str(failure(kernel))


def test_the_exception_of_a_kernel_is_the_cause() -> None:
    error = failure(lambda x: {}["missing"])
    assert "failed: KeyError: 'missing'" in str(error) and isinstance(error.__cause__, KeyError)


def test_an_exception_that_eager_raises_too_is_that_of_eager() -> None:
    def checked(x):
        if not x.min() > 0:
            raise ValueError("not positive")
        return x * 2

    op = new_op("(Tensor x) -> Tensor", checked, torch.empty_like)
    tt_torch.kernel(op)(checked)
    with pytest.raises(ValueError, match="not positive"):
        compiled(lambda x: op(x))(-torch.ones(2))


def test_the_process_is_usable_after_an_exception() -> None:
    fails, held = [True], []

    def kernel(x):
        held.append(weakref.ref(x))
        if fails.pop():
            raise ValueError("now")
        return x * 2

    op = op_with_kernel(kernel)
    run, x = compiled(lambda x: op(x + 1) + x), torch.ones(3)
    gc.collect()  # frees the weights of other tests
    before = default_device().memory_stats()["dram"]["allocated"]
    with pytest.raises(KernelError, match="ValueError: now"):
        run(x)
    gc.collect()
    assert default_device().memory_stats()["dram"]["allocated"] == before
    fails.append(False)
    assert run(x).equal(torch.full((3,), 5.0))
    gc.collect()
    assert [ref for ref in held if ref() is not None] == []


def test_interrupts_pass() -> None:
    def interrupted(x):
        raise KeyboardInterrupt

    op = op_with_kernel(interrupted)
    with pytest.raises(KeyboardInterrupt):
        compiled(lambda x: op(x))(torch.ones(2))


def test_a_kernel_that_keeps_its_inputs_reads_no_freed_memory() -> None:
    kept = []
    op = op_with_kernel(lambda x: kept.append(x) or x * 2)
    run = compiled(lambda x: op(x + 1))
    for value in (1.0, 2.0):
        run(torch.full((1000,), value))
    assert [x.unique().tolist() for x in kept] == [[2.0], [3.0]]


def test_a_kernel_calls_the_program_that_it_belongs_to() -> None:
    """Without this error, the library would wait for itself."""
    run = None
    op = op_with_kernel(lambda x: run(x))
    run = compiled(lambda x: op(x))
    with pytest.raises(KernelError, match="called from inside its own"):
        run(torch.ones(2))


@pytest.mark.parametrize("ttnn", ["", "module", ":f", "m:", "m:f()", "m:f\n", "1m:f", "m..n:f", "m:f; import os"])
def test_names_of_functions_for_ttnn(ttnn) -> None:
    op = new_op("(Tensor x) -> Tensor", lambda x: x * 2)
    with pytest.raises(ExtensionError, match=r"is no function; it takes 'package\.module:function'"):
        tt_torch.kernel(op, ttnn=ttnn)


# --- device and files ---------------------------------------------------------------------------


def binary_of(op, *inputs):
    return tt_torch.compile_model(lambda *x: op(*x), inputs, options=ON_DEVICE).executor.binary


def test_memory_is_counted() -> None:
    op = op_with_kernel(lambda x: torch.cat([x] * 8), function=lambda x: torch.cat([x] * 8))
    binary, size = binary_of(op, torch.ones(64, 64)), 64 * 64 * 4
    with Device(dram_bank_size=1 << 20) as device:
        program = device.load(binary)
        program([torch.ones(64, 64)])
        assert program.memory_stats()["dram_peak"] >= 9 * size
    with Device(dram_bank_size=8 << 10) as device, pytest.raises(tt_torch.errors.DeviceMemoryError):
        device.load(binary)([torch.ones(64, 64)])


def test_the_op_is_shown_under_its_name() -> None:
    op = op_with_kernel(lambda x: x * 2)
    (program,) = decode(binary_of(op, torch.ones(2, 3)))["programs"]
    (found,) = [found for found in ops(program) if found.name == "CpuOp"]
    assert found.key == f"CpuOp.{full_name(op)}"
    assert (found.record["dylib_id"], found.operands[0].dtype, found.results[0].shape) == (2**32 - 1, "Float32", (2, 3))
    assert found.operands[0].tiled and found.results[0].tiled


OTHER = """
import sys, torch, tt_torch
from tt_torch.errors import KernelMissingError
try:
    tt_torch.load(sys.argv[1])
except KernelMissingError as error:
    print(error)
torch.library.define("elsewhere::doubled", "(Tensor x) -> Tensor")
tt_torch.kernel(torch.ops.elsewhere.doubled)(lambda x: x * 2)
print(tt_torch.load(sys.argv[1])(torch.ones(3)).tolist())
"""


def test_another_process_runs_the_file_with_its_own_kernel(tmp_path: Path, forks: Server) -> None:
    torch.library.define("elsewhere::doubled", "(Tensor x) -> Tensor")
    torch.library.impl("elsewhere::doubled", "CompositeExplicitAutograd", lambda x: x * 2)
    torch.library.register_fake("elsewhere::doubled", torch.empty_like)
    tt_torch.kernel(torch.ops.elsewhere.doubled)(lambda x: x * 2)
    model = tt_torch.compile_model(lambda x: torch.ops.elsewhere.doubled(x) + 1, (torch.ones(3),), options=ON_DEVICE)
    model.save(tmp_path / "model.ttpkg")
    done = forks.run("-c", OTHER, tmp_path / "model.ttpkg")
    assert done.returncode == 0, done.stderr
    missing, results = done.stdout.splitlines()
    assert "the program has the op elsewhere::doubled.default, and this process has no kernel of it" in missing
    assert results == "[3.0, 3.0, 3.0]"

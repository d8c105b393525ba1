"""Sequences of ops that run as one kernel compute the same as the single ops."""

import pytest
import torch
from programs import Maker
from torch.profiler import ProfilerActivity, profile

from tt_torch.runtime import Binary, Executable

TYPES = [("Float32", torch.float32, 1e-5), ("BFloat16", torch.bfloat16, 0)]


def unary(maker, function, x, dtype):
    return maker.op("EltwiseUnaryOp", type=function, **{"in": x}, out=maker.tensor(x["desc"]["shape"], dtype))


def linear(tail, dtype):
    maker = Maker()
    x, w, b = maker.input((8, 64), dtype), maker.input((32, 64), dtype), maker.input((32,), dtype)
    r = maker.input((8, 32), dtype)
    y = maker.op("LinearOp", a=x, b=w, bias=b, transpose_b=True, out=maker.tensor((8, 32), dtype))
    if tail == "Add":
        y = maker.binary_op("Add", r, y, maker.tensor((8, 32), dtype))
    elif tail == "kept":  # the product has a second reader, so it must be kept
        y = maker.binary_op("Add", y, unary(maker, "Relu", y, dtype), maker.tensor((8, 32), dtype))
    else:
        y = unary(maker, tail, y, dtype)
    return maker.binary(y), [(8, 64), (32, 64), (32,), (8, 32)]


def conv(tail, dtype):
    maker = Maker()
    x, w = maker.input((1, 1, 2 * 6 * 6, 16), dtype), maker.input((16, 16, 3, 3), dtype, "host", tile=False)
    b, r = maker.input((1, 1, 1, 16), dtype), maker.input((1, 1, 2 * 6 * 6, 16), dtype)
    y = maker.op(
        "Conv2dOp", input=x, weight=w, bias=b, out=maker.tensor((1, 1, 72, 16), dtype), in_channels=16,
        out_channels=16, batch_size=2, input_height=6, input_width=6, kernel_size=[3, 3], stride=[1, 1],
        padding=[1, 1, 1, 1], dilation=[1, 1], groups=1,
    )  # fmt: skip
    for function in tail.split("+"):
        if function == "Add":
            y = maker.binary_op("Add", y, r, maker.tensor((1, 1, 72, 16), dtype))
        else:
            y = unary(maker, function, y, dtype)
    return maker.binary(y), [(1, 1, 72, 16), (16, 16, 3, 3), (1, 1, 1, 16), (1, 1, 72, 16)]


PROGRAMS = [(linear, tail) for tail in ("Add", "Relu", "Gelu", "kept")]
PROGRAMS += [(conv, tail) for tail in ("Relu", "Gelu", "Add", "Add+Relu", "Add+Gelu", "Relu+Add", "Add+Add")]


@pytest.mark.parametrize("resident", [(), (1, 2)])
@pytest.mark.parametrize("dtype, torch_dtype, tolerance", TYPES)
@pytest.mark.parametrize("program, tail", PROGRAMS)
def test_fused_equals_single(program, tail, dtype, torch_dtype, tolerance, resident):
    torch.manual_seed(0)
    data, shapes = program(tail, dtype)
    inputs = [(torch.randn(shape) / 4).to(torch_dtype) for shape in shapes]
    executable = Executable(Binary(data))
    fused = executable(inputs, resident)[0].float()
    executable.set_callback(lambda *event: None)
    single = executable(inputs, resident)[0].float()
    assert (fused - single).abs().max() <= tolerance * max(1.0, single.abs().max())


@pytest.mark.parametrize("reader", ["ConcatOp", "EltwiseUnaryCompositeOp", "program"])
def test_a_product_with_a_second_reader_is_kept(reader):
    """The product is read as an element of a list, as a field of a union, or as a result of the program."""
    maker = Maker()
    a, b = torch.randn(8, 8), torch.randn(8, 8)
    y = maker.op("MatmulOp", a=maker.input((8, 8)), b=maker.input((8, 8)), out=maker.tensor((8, 8)))
    z = unary(maker, "Relu", y, "Float32")
    product, outputs = a @ b, [z]
    expected = [product.relu()]
    if reader == "ConcatOp":
        outputs.append(maker.op("ConcatOp", inputs=[z, y], dim=0, out=maker.tensor((16, 8))))
        expected.append(torch.cat([product.relu(), product]))
    elif reader == "program":
        outputs.append(y)
        expected.append(product)
    else:
        bounds = {"ClampTensorOpParams": {"min": y, "max": y}}
        outputs.append(maker.op(reader, type="ClampTensor", **{"in": z}, params=bounds, out=maker.tensor((8, 8))))
        expected.append(product)
    executable = Executable(Binary(maker.binary(*outputs)))
    for resident in ((), (1,)):
        for got, want in zip(executable([a, b], resident), expected, strict=True):
            torch.testing.assert_close(got, want)


def kernels_of(data, inputs, resident):
    """The names of the kernels that a later call of a program runs, as PyTorch's profiler sees them."""
    executable = Executable(Binary(data))
    executable(inputs, resident)
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        executable(inputs, resident)
    return [event.name() for event in profiled.profiler.kineto_results.events()]


LEFT = {"kept": {"aten::clamp_min"}, "Add+Gelu": {"aten::gelu"}}
# The value between two ops is rounded to bfloat16. Only a relu gives the same before and after this rounding.
KERNELS = {"Add": "aten::add", "Gelu": "aten::gelu", "Relu": "aten::clamp_min", "kept": "aten::add"}


@pytest.mark.parametrize("dtype, torch_dtype", [case[:2] for case in TYPES])
@pytest.mark.parametrize("program, tail", PROGRAMS)
def test_a_product_and_its_tail_run_as_one_kernel(program, tail, dtype, torch_dtype):
    """The weight is packed. An add of few float32 elements is a plain loop, which the profiler does not see."""
    if dtype == "BFloat16" and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("this processor has no instructions of bfloat16, so nothing is fused")
    data, shapes = program(tail, dtype)
    names = kernels_of(data, [torch.randn(shape).to(torch_dtype) for shape in shapes], (1, 2))
    fused = "mkldnn::_linear_pointwise" if program is linear else "mkldnn::_convolution_pointwise"
    assert names.count(fused) == 1
    left = LEFT.get(tail, set())
    if dtype == "BFloat16":
        left |= {KERNELS[function] for function in tail.removeprefix("Relu").split("+") if function}
    assert {*KERNELS.values(), "aten::relu"} & {*names} == left


@pytest.mark.parametrize(
    "a, b, bias, packed",
    [
        ((6, 8), (8, 5), None, True),
        ((3, 6, 8), (8, 5), (5,), True),
        ((3, 6, 8), (1, 8, 5), (1, 5), True),
        ((6, 8), (8, 5), (6, 1), False),
        ((6, 8), (8, 5), (1,), False),
        ((6, 8), (8, 5), (), False),
        ((3, 6, 8), (3, 8, 5), None, False),
        ((6, 8), (3, 8, 5), None, False),
        ((8,), (8, 5), None, False),
    ],
)
def test_which_weights_are_packed(a, b, bias, packed):
    """A weight is packed if it is one matrix, and if there is no bias or the bias depends on the column only."""
    maker = Maker()
    shapes = [a, b] if bias is None else [a, b, bias]
    operands = dict(zip(("a", "b", "bias"), (maker.input(shape) for shape in shapes), strict=False))
    y = maker.op(
        "MatmulOp" if bias is None else "LinearOp",
        **operands,
        out=maker.tensor(torch.matmul(torch.empty(a), torch.empty(b)).shape),
    )
    names = kernels_of(maker.binary(y), [torch.randn(shape) for shape in shapes], range(1, len(shapes)))
    assert ("mkldnn::_linear_pointwise" in names) == packed

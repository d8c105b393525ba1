"""Sequences of ops that run as one kernel compute the same as the single ops."""

import pytest
import torch
from programs import Maker

from tt_torch.runtime import Binary, Executable

TYPES = [("Float32", torch.float32, 1e-5), ("BFloat16", torch.bfloat16, 2e-2)]


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


@pytest.mark.parametrize("resident", [(), (1, 2)])
@pytest.mark.parametrize("dtype, torch_dtype, tolerance", TYPES)
@pytest.mark.parametrize(
    "program, tail",
    [(linear, tail) for tail in ("Add", "Relu", "Gelu", "kept")]
    + [(conv, tail) for tail in ("Relu", "Gelu", "Add", "Add+Relu", "Add+Gelu", "Relu+Add")],
)
def test_fused_equals_single(program, tail, dtype, torch_dtype, tolerance, resident):
    torch.manual_seed(0)
    data, shapes = program(tail, dtype)
    inputs = [(torch.randn(shape) / 4).to(torch_dtype) for shape in shapes]
    executable = Executable(Binary(data))
    fused = executable(inputs, resident)[0].float()
    executable.set_callback(lambda *event: None)
    single = executable(inputs, resident)[0].float()
    assert (fused - single).abs().max() <= tolerance * max(1.0, single.abs().max())

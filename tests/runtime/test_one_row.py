"""Products of one row of bfloat16 and a resident weight have kernels of their own, which are compared with float64."""

import random
from pathlib import Path

import pytest
import torch
from programs import Maker
from torch.profiler import ProfilerActivity, profile

from tt_torch.runtime import Binary, Executable

TAILS = {"": lambda y: y, "relu": torch.relu, "gelu": torch.nn.functional.gelu, "silu": torch.nn.functional.silu}
# Without AMX, oneDNN packs a weight in another layout and multiplies it itself.
INSTRUCTIONS = {"avx512_bf16", "avx512bw", "amx_bf16"}
CPU = Path("/proc/cpuinfo")
HAS_KERNEL = CPU.exists() and set(CPU.read_text().split()) >= INSTRUCTIONS


def made(shape, columns, transposed, tail, bias):
    """A program with one product, and the shapes of its inputs."""
    maker, dtype = Maker(), "BFloat16"
    shapes = [shape, (columns, shape[-1]) if transposed else (shape[-1], columns)] + [(columns,)] * bias
    x, w, *b = (maker.input(s, dtype) for s in shapes)
    out = maker.tensor((*shape[:-1], columns), dtype)
    operands = {"bias": b[0]} if bias else {}
    y = maker.op("LinearOp", a=x, b=w, transpose_b=transposed, activation=tail, out=out, **operands)
    return maker.binary(y), shapes


def wanted(inputs, transposed, tail):
    """The exact result, and how far a sum in float32 that is rounded to bfloat16 may be from it."""
    x, w, *b = (t.double() for t in inputs)
    w = w.T if transposed else w
    total, size = x @ w + sum(b), x.abs() @ w.abs() + sum(t.abs() for t in b)
    result = TAILS[tail](total)
    return result, result.abs() / 2**8 + size * w.shape[0] / 2**23 + 1e-37


@pytest.mark.parametrize("seed", range(40))
def test_a_row_has_the_values_of_the_product_in_float64(seed):
    choose = random.Random(seed)
    torch.manual_seed(seed)
    depth, columns = choose.choice([1, 31, 64, 70, 257, 2048]), choose.choice([1, 8, 32, 33, 100, 1000, 4100])
    shape = choose.choice([(1, depth), (1, 1, depth), (1, 1, 1, depth)])
    transposed, tail, bias = choose.random() < 0.5, choose.choice(list(TAILS)), choose.random() < 0.5
    data, shapes = made(shape, columns, transposed, tail, bias)
    inputs = [torch.randn(s).bfloat16() for s in shapes]
    resident = range(1, len(inputs))
    executable = Executable(Binary(data))
    for _ in range(2):  # the first call examines the weight
        found = executable(inputs, resident)[0].double()
        expected, bound = wanted(inputs, transposed, tail)
        assert found.shape == expected.shape
        assert ((found - expected).abs() <= bound).all(), (shape, columns, transposed, tail, bias)
        inputs[1] = torch.randn(shapes[1]).bfloat16()  # another weight has another memory


def test_values_that_are_no_numbers_stay_in_their_columns():
    data, shapes = made((1, 70), 45, True, "", False)
    x, w = torch.ones(shapes[0]).bfloat16(), torch.ones(shapes[1]).bfloat16()
    w[3, 69], w[44, 0], x[0, 5] = float("nan"), float("inf"), -2.0
    found = Executable(Binary(data))([x, w], (1,))[0][0]
    assert found[3].isnan() and found[44].isinf()
    assert (found[[i for i in range(45) if i not in (3, 44)]] == 67).all()


@pytest.mark.skipif(not HAS_KERNEL, reason="this processor lacks the instructions of the kernels for one row")
@pytest.mark.parametrize("rows, own", [(1, True), (2, False)])
def test_one_row_is_not_left_to_onednn(rows, own):
    data, shapes = made((rows, 96), 64, True, "", False)
    inputs = [torch.randn(s).bfloat16() for s in shapes]
    executable = Executable(Binary(data))
    executable(inputs, (1,))
    with profile(activities=[ProfilerActivity.CPU]) as events:
        executable(inputs, (1,))
    names = {event.key for event in events.key_averages()}
    assert ("mkldnn::_linear_pointwise" not in names) == own

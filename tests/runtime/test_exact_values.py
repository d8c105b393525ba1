"""The exact emulated device is compared with values of Tenstorrent's kernels.

`data/golden/blackhole.json` names 40 calls of `ttnn` 0.81.1 on Tenstorrent's functional simulator of Blackhole. It also
names the arrays of each call in `blackhole.npz`. int16 arrays are the bits of bfloat16. The simulator is no silicon.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from programs import Maker

import tt_torch
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.runtime import Binary, Device, Executable

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
CALLS = json.loads((GOLDEN / "blackhole.json").read_text())
ARRAYS = np.load(GOLDEN / "blackhole.npz")
WIRE = {torch.float32: "Float32", torch.bfloat16: "BFloat16"}
WEIGHTS = {"bfp8": "BFP_BFloat8", "bfp4": "BFP_BFloat4"}


def tensor(name):
    array = torch.from_numpy(ARRAYS[name])
    return array.view(torch.bfloat16) if array.dtype is torch.int16 else array


def program(call, operands, result):
    """One op; block-float weights are bfloat16 inputs, which the device converts."""
    maker = Maker()
    refs = [maker.input(x.shape, WIRE[x.dtype]) for x in operands]
    if "weights" in call:
        cast = maker.tensor(operands[1].shape, WEIGHTS[call["weights"]])
        refs[1] = maker.op("TypecastOp", **{"in": refs[1]}, dtype=WEIGHTS[call["weights"]], out=cast)
    out = maker.tensor(result.shape, WIRE[result.dtype])
    if call["op"] in ("add", "subtract", "multiply"):
        return maker.binary(maker.binary_op(call["op"].capitalize(), *refs, out))
    if call["op"] in ("sum", "mean"):
        where = {"dim_arg": [call["dim"]], "keep_dim": True}
        maker.op("ReductionOp", type=call["op"].capitalize(), **where, **{"in": refs[0]}, out=out)
        return maker.binary(out)
    fields = dict(zip(("a", "b", "bias"), refs, strict=False))
    if "fidelity" in call:
        asked = {"math_fidelity": call["fidelity"], "fp32_dest_acc_en": call["fp32_dest_acc_en"]}
        fields["compute_config"] = {**asked, "packer_l1_acc": True}
    maker.op("LinearOp" if call["op"] == "linear" else "MatmulOp", **fields, out=out)
    return maker.binary(out)


def run(name, exact):
    call = CALLS[name]
    operands, want = [tensor(x) for x in call["operands"]], tensor(call["result"])
    executable = Executable(Binary(program(call, operands, want)), device=Device("blackhole", exact=exact))
    (got,) = executable(operands)
    assert got.dtype is want.dtype
    return got, want


@pytest.mark.parametrize("name", CALLS)
def test_every_element_is_that_of_the_kernel(name):
    got, want = run(name, exact=True)
    assert torch.equal(got, want)


@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if call.get("fidelity") == "LoFi"])
def test_the_fast_device_computes_with_all_bits(name):
    """This also shows that the values above differ between the two devices."""
    got, want = run(name, exact=False)
    assert (got == want).float().mean() < 0.5


def product(a, b, fields, shape):
    maker = Maker()
    refs = {name: maker.input(x.shape, WIRE[x.dtype]) for name, x in (("a", a), ("b", b))}
    out = maker.op("MatmulOp", **refs, out=maker.tensor(shape), **fields)
    (got,) = Executable(Binary(maker.binary(out)), device=Device(exact=True))([a, b])
    return got


def swapped(x, swap):
    return x.transpose(-1, -2).contiguous() if swap else x


sides = st.integers(0, 70)


@given(st.data())
def test_products_that_no_rounding_changes(data):
    """The operands are whole numbers of 7 and of 5 bits. The matrix unit keeps all bits of their products and sums.

    In float32 registers, the sum is below 2^24. In bfloat16 registers, the sum must be at most 256.
    """
    m, k, n = data.draw(sides), data.draw(sides), data.draw(sides)
    batches = data.draw(st.sampled_from([((), ()), ((3,), (3,)), ((2, 1), (3,)), ((), (2,)), ((0,), ())]))
    float32, in_l1, first, second = (data.draw(st.booleans()) for _ in range(4))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 2**31)))
    left, right = (127, 31) if float32 else (1, 1)
    a = torch.randint(-left, left + 1, (*batches[0], m, k), generator=generator).float()
    b = torch.randint(-right, right + 1, (*batches[1], k, n), generator=generator).float()
    dtype = data.draw(st.sampled_from([torch.float32, torch.bfloat16]))
    fidelity = data.draw(st.sampled_from(["LoFi", "HiFi2", "HiFi3", "HiFi4"]))
    config = {"math_fidelity": fidelity, "fp32_dest_acc_en": float32, "packer_l1_acc": in_l1}
    fields = {"compute_config": config, "transpose_a": first, "transpose_b": second}
    want = a @ b
    got = product(swapped(a, first).to(dtype), swapped(b, second).to(dtype), fields, want.shape)
    assert torch.equal(got, want)


@given(st.floats(width=32, allow_nan=False), st.floats(width=32, allow_nan=False))
def test_one_product_of_four_passes_is_that_of_the_operands_bits(x, y):
    """The left operand has 11 bits and the right one 10. Denormals count as zeros."""
    assume(abs(x) < 2.0**60 and abs(y) < 2.0**60)
    a, b = torch.tensor([[x]]), torch.tensor([[y]])
    got = product(a, b, {"compute_config": {"math_fidelity": "HiFi4", "fp32_dest_acc_en": True}}, (1, 1))
    left, right = ((v.view(torch.int32) & bits).view(torch.float32) for v, bits in ((a, -0x2000), (b, -0x4000)))
    left, right = (torch.where(v.abs() < 2.0**-126, 0, v) for v in (left, right))
    want = left * right
    assume(want == 0 or abs(want) > 2.0**-100)  # below that, the parts of a product are too small for float32
    assert torch.equal(got, want)


def test_bfloat16_registers_lose_small_terms():
    """The sum is 1024 plus two terms of 0.5 in each of nine tiles. At 1024, a bfloat16 register has the unit 8, so the
    terms of one tile do not change it."""
    a, b = torch.zeros(1, 320).bfloat16(), torch.ones(320, 1).bfloat16()
    a[0, 0], a[0, 32::16] = 1024, 0.5
    for float32, want in ((True, 1024 + 18 * 0.5), (False, 1024)):
        got = product(a, b, {"compute_config": {"math_fidelity": "HiFi4", "fp32_dest_acc_en": float32}}, (1, 1))
        assert got.item() == want


@pytest.mark.parametrize("fidelity, worst, best", [("lofi", 0.1, 0.01), ("hifi4", 0.01, 0.0)])
def test_a_compiled_model_runs_on_the_exact_device(fidelity, worst, best):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 40)).eval()
    x = torch.randn(16, 64)
    options = BackendOptions(
        compiler_config=CompilerConfig(dtype="bf16", math_fidelity=fidelity), devices=[Device(exact=True)]
    )
    got = torch.compile(model, backend=tt_torch.backend, options=options)(x)
    error = (got - model(x)).norm() / model(x).norm()
    assert best < error < worst


@pytest.mark.parametrize(
    "kind, dtype, dims",
    [
        ("Sum", torch.float32, [1]),
        ("Sum", torch.bfloat16, [0]),
        ("Mean", torch.bfloat16, [1, 2]),
        ("Max", torch.bfloat16, [2]),
    ],
)
def test_reductions_that_are_no_product_with_ones(kind, dtype, dims):
    """Only sums and means of bfloat16 over one of the last two dimensions go through the matrix unit."""
    x = torch.randn(3, 40, 50).to(dtype)
    want = {"Sum": torch.sum, "Mean": torch.mean, "Max": torch.amax}[kind](x, dims, keepdim=True)
    maker = Maker()
    fields = {"type": kind, "dim_arg": dims, "keep_dim": True, "in": maker.input(x.shape, WIRE[dtype])}
    out = maker.op("ReductionOp", **fields, out=maker.tensor(want.shape, WIRE[dtype]))
    (got,) = Executable(Binary(maker.binary(out)), device=Device(exact=True))([x])
    assert torch.equal(got, want)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_residual_is_added_to_the_rounded_product(dtype):
    """If a bias has as many rows as the result, the library adds it in a separate kernel."""
    torch.manual_seed(0)
    linear, x = torch.nn.Linear(64, 64, bias=False).to(dtype), torch.randn(40, 64).to(dtype)
    options = BackendOptions(devices=[Device(exact=True)])

    @torch.no_grad()
    def run(function, *inputs):
        return torch.compile(function, backend=tt_torch.backend, options=options)(*inputs)

    assert torch.equal(run(lambda x: linear(x) + x, x), run(torch.add, run(linear, x), x))

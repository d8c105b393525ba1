"""Pearson correlation (PCC), largest difference (ATOL), and comparisons of outputs and modules by these."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tt_torch.accuracy import (
    calculate_atol,
    calculate_pcc,
    calculate_rtol,
    calculate_ulp,
    random_inputs,
    verify_against_golden,
)
from tt_torch.tools import utils, verify

NAN, INF = math.nan, math.inf

CASES = [  # values, golden, PCC, largest difference
    ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], 1.0, 0.0),
    ([2.0, 4.0, 6.0], [1.0, 2.0, 3.0], 1.0, 3.0),
    ([3.0, 2.0, 1.0], [1.0, 2.0, 3.0], -1.0, 2.0),
    ([NAN, 1.0, 2.0], [NAN, 1.0, 2.0], 1.0, 0.0),
    ([NAN, 1.0, 2.5, 4.0], [NAN, 1.0, 2.0, 3.0], 1.0, 1.0),
    ([0.0, 1.0, 2.0], [NAN, 1.0, 2.0], 0.0, NAN),
    ([NAN, 1.0, 2.0], [0.0, 1.0, 2.0], 0.0, NAN),
    ([INF, 1.0, 2.0], [INF, 1.0, 2.0], 1.0, 0.0),
    ([-INF, 1.0, 2.0], [INF, 1.0, 2.0], 0.0, INF),
    ([INF, 1.0, 2.0], [0.0, 1.0, 2.0], 0.0, INF),
    ([5.0, 5.0], [5.01, 5.01], 1.0, 0.01),
    ([5.0, 5.0], [6.0, 6.0], 0.0, 1.0),
    ([0.0, 0.0], [1.0, 2.0], 0.0, 2.0),
    ([1e300, -2e300], [1e300, -1e300], 1.0, 1e300),
    ([], [], 1.0, 0.0),
]


@pytest.mark.parametrize(("values", "golden", "pcc", "atol"), CASES)
def test_metrics(values, golden, pcc, atol):
    tensors = [torch.tensor(v, dtype=torch.float64) for v in (values, golden)]
    before = [t.clone() for t in tensors]
    assert calculate_pcc(*tensors) == pytest.approx(pcc)
    assert calculate_atol(*tensors) == pytest.approx(atol, nan_ok=True)
    for tensor, copy in zip(tensors, before, strict=True):
        assert torch.equal(tensor.nan_to_num(0.5), copy.nan_to_num(0.5))


@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.uint8, torch.bfloat16, torch.complex64])
def test_metrics_take_every_type(dtype):
    tensor = torch.tensor([0, 1, 1, 0]).to(dtype)
    assert calculate_pcc(tensor, tensor) == 1.0
    assert calculate_atol(tensor, tensor.roll(1)) == 1.0


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=2, max_size=50), st.integers(0, 2**32 - 1))
def test_pcc_is_symmetric_bounded_and_agrees_with_corrcoef(golden, seed):
    a = torch.tensor(golden, dtype=torch.float64)
    b = torch.randn(len(golden), dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    pcc = calculate_pcc(b, a)
    assert pcc == pytest.approx(calculate_pcc(a, b), abs=1e-9) and -1 <= pcc <= 1
    if a.std() > 1e-3:
        assert pcc == pytest.approx(torch.corrcoef(torch.stack([a, b]))[0, 1].item(), abs=1e-9)


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"shapes differ: got \(2,\), expected \(2, 1\)"):
        calculate_pcc(torch.zeros(2), torch.zeros(2, 1))


def test_outputs_within_bounds(capsys):
    golden = [torch.tensor([1.0, 2.0, 4.0]), torch.tensor(3.0), "text"]
    near = [torch.tensor([1.0, 2.0, 4.01]), torch.tensor(3.001), "text"]
    pccs, atols, passed_pcc, passed_atol, bounds = verify_against_golden(golden, near, True, True, relative_atol=0.01)
    assert passed_pcc and passed_atol and pccs[1] == 1.0
    assert atols == pytest.approx([0.01, 0.001], rel=1e-2) and bounds == pytest.approx([0.04, 0.03])
    assert capsys.readouterr().out.count("✅") == 4


def test_outputs_outside_bounds(capsys):
    golden, wrong = [torch.tensor([1.0, 2.0])], [torch.tensor([2.0, 1.0])]
    result = verify_against_golden(golden, wrong, False, False, required_atol=0.1)
    assert result[2:4] == (False, False)
    assert capsys.readouterr().out.count("❎") == 2
    with pytest.raises(AssertionError, match=r"❌ output 0: PCC -1, required >= 0.99"):
        verify_against_golden(golden, wrong, True, False, required_atol=0.1)
    with pytest.raises(AssertionError, match=r"❌ output 0: ATOL 1, required <= 0.1"):
        verify_against_golden(golden, wrong, False, True, required_atol=0.1)


@pytest.mark.parametrize(
    ("golden", "value", "bounds", "text"),
    [
        ([torch.zeros(2)], [torch.zeros(3)], {"required_atol": 1}, "Shape of output 0"),
        ([torch.zeros(2)], [], {"required_atol": 1}, "Number of outputs"),
        (["a"], ["b"], {"required_atol": 1}, "Output 0 differs"),
        ([], [], {"required_atol": 1, "relative_atol": 1}, "Give either"),
        ([], [], {}, "Give either"),
    ],
)
def test_what_cannot_be_compared(golden, value, bounds, text):
    with pytest.raises(AssertionError, match=text):
        verify_against_golden(golden, value, False, False, **bounds)


def test_random_inputs():
    dtypes = [torch.float32, torch.int64, torch.bool, torch.uint8, torch.bfloat16]
    tensors = random_inputs([(4, 5)] * 5, dtypes, (-2.0, -1.0), (7, 1000))
    assert [t.dtype for t in tensors] == dtypes
    assert tensors[0].max() < -1 and tensors[1].min() >= 7
    with pytest.raises(ValueError, match="2 shapes but 1 data types"):
        random_inputs([(1,), (1,)], [torch.bool])


class Doubled(torch.nn.Module):
    def forward(self, x):
        return {"y": x.mul_(2)}


def test_verify_module_compares_with_eager(monkeypatch):
    monkeypatch.setattr(verify, "compile_model", lambda mod, config, device: mod)
    assert verify.verify_module(Doubled(), input_shapes=[(3, 3)])[2:4] == (True, True)
    monkeypatch.setattr(verify, "compile_model", lambda mod, config, device: lambda x: {"y": -x})
    with pytest.raises(AssertionError, match="Outputs differ"):
        verify.verify_module(Doubled(), inputs=[torch.rand(3)])


def test_familiar_names():
    assert utils.calculate_pcc is calculate_pcc
    assert utils.CompileDepth.EXECUTE == 6 and utils.OpByOpBackend.STABLEHLO == 2


@pytest.mark.parametrize(
    ("values", "golden", "dtype", "rtol", "ulp"),
    [
        ([1.0, 2.0], [1.0, 2.0], torch.float32, 0.0, 0.0),
        ([1.0 + 2**-23, 2.0], [1.0, 2.0], torch.float32, 2**-23, 1.0),
        ([1.0, -2.0 - 2**-20], [1.0, -2.0], torch.float32, 2**-21, 4.0),
        ([1.0078125], [1.0], torch.bfloat16, 2**-7, 1.0),
        ([2**-149, 3.0], [-(2**-149), 3.0], torch.float32, 2.0, 2.0),  # the values have different signs
        ([1.0], [0.0], torch.float32, 0.0, 0x3F800000),  # zero has no relative error
        ([NAN, 1.0], [NAN, 1.0], torch.float32, 0.0, 0.0),
        ([NAN], [1.0], torch.float32, NAN, NAN),
        ([5, -3], [4, -3], torch.int64, 0.25, 1.0),
        ([], [], torch.float32, 0.0, 0.0),
    ],
)
def test_relative_error_and_ulp(values, golden, dtype, rtol, ulp):
    tensors = [torch.tensor(v, dtype=dtype) for v in (values, golden)]
    assert calculate_rtol(*tensors) == pytest.approx(rtol, nan_ok=True)
    assert calculate_ulp(*tensors) == pytest.approx(ulp, nan_ok=True)


def test_all_chips_at_the_same_time():
    found = verify.verify_torch_module_async(torch.nn.Linear(8, 4).eval(), input_shapes=[(2, 8)])
    assert len(found) == 8 and all(passed_pcc and passed_atol for _, _, passed_pcc, passed_atol, _ in found)
    cast = verify.verify_torch_module_async(lambda x: x.to(torch.float32), [torch.ones(4)])
    assert len(cast) == 8
    with pytest.raises(AssertionError):
        verify.verify_torch_module_async(
            lambda x: x + 1 if torch.compiler.is_compiling() else x, input_shapes=[(4, 4)], compiler_config=None
        )

"""The fuzzer: it sees errors in programs, and lets roundings pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from fuzz_texts import program
from torch import inf

from tt_torch.dynamo.types import Function
from tt_torch.fuzz import check
from tt_torch.fuzz.check import wrong
from tt_torch.fuzz.programs import Program, trainable
from tt_torch.fuzz.tolerance import OtherRoundings, difference
from tt_torch.fuzz.ways import EAGER, TRACED, WAYS, Seen, Way, run

# --- what counts as a difference


def others(of: Program) -> list[torch.Tensor]:
    with_errors = []
    for seed in range(4):
        with OtherRoundings(seed, bf16=False):
            with_errors.append(of.function()(*of.inputs.values())[0])
    return with_errors


def test_a_difference_of_nearly_equal_numbers_may_be_far_off() -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    made = program("x.exp() - x.exp() * 1.0000001", x=x)
    (expected,) = made.function()(x)
    assert difference(expected * 1.5, expected, others(made)) == ""
    assert "wrong" in difference(expected + 1e-3, expected, others(made))


def test_the_cross_product_of_equal_vectors_is_a_rounding_error_except_for_integers() -> None:
    x = torch.tensor([1116.77734375, 1586.1846923828125, -1403.8804931640625])
    with OtherRoundings(1, bf16=False):
        assert torch.linalg.cross(x, x).count_nonzero() == 3
        assert torch.linalg.cross(x.int(), x.int() + 1).equal(torch.linalg.cross(x.long(), x.long() + 1).int())


def test_log_softmax_of_integers_without_elements_gets_no_errors() -> None:
    """Its results are integers, which have no rounding errors."""
    with OtherRoundings(1, bf16=False):
        assert torch.nn.functional.log_softmax(torch.zeros(0, 2, dtype=torch.int32), 1).dtype is torch.int32


def test_an_error_of_a_plain_result_is_seen() -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    made = program("x.exp()", x=x)
    (expected,) = made.function()(x)
    assert difference(expected * (1 + 1e-6), expected, others(made)) == ""
    assert "(3 wrong)" in difference(expected * 1.001, expected, others(made))
    for special in (float("nan"), float("inf")):
        assert "(3 wrong)" in difference(torch.full((3,), special), expected, others(made))
    assert "dtype" in difference(expected.double(), expected, others(made))
    assert "shape" in difference(expected[None], expected, others(made))


@pytest.mark.parametrize(
    "text",
    [
        "x.std()",
        "torch.sinc(x)",
        "torch.linalg.cross(x, x.flip(0))",
        "torch.fft.rfft(x.float()).real",
        "torch.nn.functional.layer_norm(x, [3])",
        "torch.nn.functional.batch_norm(x.expand(2, 3).T, None, None, training=True)",
        "x.new_zeros(2).index_add(0, torch.tensor([0, 1, 1]), x)",
        "x.new_zeros(2).scatter_reduce(0, torch.tensor([0, 1, 1]), x, 'mean')",
        "x.clamp(max=2.5)",
        "x.cumsum(0)",
        "torch.lerp(x, x.exp(), 0.3)",
        "x.digamma()",
        "torch.nn.functional.gelu(x, approximate='tanh')",
        "torch.add(x, x, alpha=0.3)",
        "x.clone().addcmul_(x, x)",
        "x.prod()",
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_errors_of_ops_with_rules_of_their_own_are_seen(text: str, dtype: torch.dtype) -> None:
    """An op that may lose digits or choose the sign of a zero must still be right for numbers that lose no digits."""
    made = program(text, x=torch.tensor([1.0, 2.0, 4.5], dtype=dtype))
    (expected,) = made.function()(made.inputs["x"])
    error = 1e-3 if dtype is torch.float32 else 0.3
    assert difference(expected, expected, others(made)) == ""
    assert "wrong" in difference(expected * (1 + error), expected, others(made))


def test_only_an_unstable_comparison_may_differ() -> None:
    made = program("x.exp() == y.exp()", x=torch.tensor([1.0, 1.0]), y=torch.tensor([1.0, 2.0]))
    (expected,) = made.function()(*made.inputs.values())
    assert difference(torch.tensor([False, False]), expected, others(made)) == ""
    assert "at [1]" in difference(torch.tensor([True, True]), expected, others(made))


def test_an_index_that_other_roundings_put_out_of_range_is_no_error() -> None:
    made = program("(x.exp() - 1.7182817 < 1).long()", "x[v0]", x=torch.ones(1))
    with pytest.raises(IndexError):
        others(made)
    assert check.wrong(made, "compile") == check.MATCH


def test_what_a_fourier_transform_leaves_of_zero_may_be_zero() -> None:
    made = program("torch.fft.rfft(x).imag", "v0 != 0", x=torch.tensor([1.0, 2.0, 0.3, 0.7, 1.1]).repeat(2))
    (expected,) = made.function()(*made.inputs.values())
    assert difference(torch.tensor([False, False, True, False, True, False]), expected, others(made)) == ""
    assert "at [2]" in difference(torch.zeros(6, dtype=torch.bool), expected, others(made))
    equal = program("torch.fft.rfft(x).real", "v0.bool()", x=torch.full((9,), 1.3))
    (expected,) = equal.function()(*equal.inputs.values())
    assert expected.tolist() == [True, False, False, False, False]
    assert difference(torch.ones(5, dtype=torch.bool), expected, others(equal)) == ""
    assert "at [0]" in difference(torch.zeros(5, dtype=torch.bool), expected, others(equal))


def test_an_error_of_an_index_that_other_roundings_have_too_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    made = program("(x.exp() - 1.7182817 < 1).long()", "x[v0]", x=torch.ones(1))
    stable = program("(x.exp() < 1).long()", "x[v0]", x=torch.ones(1))

    def broken(function: Function, inputs: Sequence[torch.Tensor], way: Way, trains: bool, *_: object) -> list[Seen]:
        if way is WAYS["compile"]:
            raise RuntimeError("index 1 is out of range")
        return run(function, inputs, way, trains)

    monkeypatch.setattr(check, "run", broken)
    assert check.wrong(made, "compile") == check.REFUSED
    assert "out of range" in check.wrong(stable, "compile")


def test_the_conversion_to_the_dtype_of_the_device_is_a_rounding() -> None:
    with OtherRoundings(None, bf16=True):
        assert (torch.tensor([-1.003]) * 1).log1p().tolist() == [-inf]
    with OtherRoundings(None, bf16=False):
        assert (torch.tensor([-1.003, 3.1]) * 3).tolist() == (torch.tensor([-1.003, 3.1]) * 3).tolist()


def test_strides_belong_to_the_shape_that_values_of_the_dtype_give() -> None:
    made = program("x.exp2()", "v0.nonzero()", x=torch.tensor([[3.0, -460.0], [1.0, 2.0]], dtype=torch.float64))
    assert wrong(replace(made, outputs=("v1",)), "compile") in (check.IN_DTYPE, check.MATCH)


def test_the_gradient_of_a_product_of_float16_may_be_smaller_than_float16() -> None:
    x = torch.randn(31, 40, generator=torch.Generator().manual_seed(0))
    made = replace(program("x.prod(0, dtype=torch.float16)", x=x), trains=True)
    assert wrong(made, "compile") == check.IN_DTYPE
    # This call runs in eager PyTorch, because the device has no such integers.
    in_eager = program("x.prod(0, dtype=torch.float16)", "y.lgamma()", x=x, y=torch.tensor([2**63 - 1, 4]))
    assert wrong(replace(in_eager, trains=True, outputs=("v0", "v1")), "compile") == check.IN_DTYPE


def test_integers_are_converted_to_the_dtype_of_the_device() -> None:
    x = torch.tensor([32767, 3], dtype=torch.int16)
    with OtherRoundings(None, bf16=True):
        assert x.tan()[0] == torch.tensor(32768.0).tan().bfloat16()
        assert (x + 1).tolist() == [-32768, 4]
        assert x.float()[x.argmax()] == 32768


def test_complex_numbers_move_as_pairs() -> None:
    with OtherRoundings(None, bf16=True):
        moved = torch.complex(torch.tensor([1.001]), torch.tensor([3.0])) * 1
        assert torch.view_as_real(moved).tolist() == [[1.0, 3.0]]


def test_products_of_narrow_floats_may_be_rounded_once() -> None:
    """Eager PyTorch rounds after each factor, here among the denormal numbers of float16."""
    x = torch.tensor([2.0**-12, 2.0**-11, 1.2, 1.2, 1.2, 1.2]).half()
    made = program("x.prod()", x=x)
    (expected,), once = made.function()(x), x.float().prod().half()
    assert expected.item() == 2.0**-23 and once.item() == 2.0**-22
    assert difference(once, expected, others(made)) == ""
    assert "wrong" in difference(once * 40, expected, others(made))


def test_numbers_are_equal_that_other_roundings_make_equal() -> None:
    x = torch.tensor([1.0, 1.25])
    with OtherRoundings(None, bf16=True):
        assert (x == 1.01).tolist() == [True, False]
        assert (x != 1.01).tolist() == [False, True]
        assert torch.isin(x, torch.tensor([1.01, 7])).tolist() == [True, False]
        assert (torch.tensor([256, 257]) == 256).tolist() == [True, False]


def test_a_difference_is_reported_after_more_roundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A difference of 1 % is reported if no run with other roundings moves the result. One run that moves it is enough
    to excuse the difference."""
    made = program("x + 1", x=torch.ones(2))
    expected = check.run(made.function(), list(made.inputs.values()), check.EAGER, False)
    got = [replace(expected[0], value=expected[0].value * 1.01), *expected[1:]]
    ours = check.WAYS["compile"]
    monkeypatch.setattr(
        check, "run", lambda function, inputs, way, trains, split=None: got if way is ours else expected
    )
    asked: list[int | None] = []

    def moved(function, inputs, trains, roundings):
        seed = roundings._generator and roundings._generator.initial_seed()
        asked.append(seed)
        return [replace(x, value=x.value + (1.0 if seed == last else 0.0)) for x in expected]

    monkeypatch.setattr(check, "_moved", moved)
    last = -1
    assert "expected 2.0" in wrong(made, "compile") and set(asked) >= {None, *range(check.DOUBTED)}
    last = check.DOUBTED - 1
    assert wrong(made, "compile") == check.MATCH


def test_gradients_may_have_memories_of_their_own() -> None:
    made = replace(program("torch.cat([x, y])", x=torch.ones(2), y=torch.ones(3)), trains=True)
    assert wrong(made, "compile") == check.MATCH


def test_strides_of_shape_functions() -> None:
    """The shape function of isin gives other strides than its kernel, whose results are dense."""
    x = torch.ones(5, 3).t()
    assert wrong(program("torch.isin(x, x[0])", x=x), "compile") == check.AS_TRACED
    beside_nonzero = program("x.nonzero()", "torch.isin(x, x[0])", x=x)
    assert wrong(replace(beside_nonzero, outputs=("v0", "v1")), "compile") == check.AS_TRACED


def test_a_gradient_of_zeros_is_as_good_as_none() -> None:
    """For an input that is only written without gradients, tracing gives a gradient of zeros, eager PyTorch none."""
    made = program("x.detach().mul_(0.001)", "y.exp()", x=torch.ones(2), y=torch.ones(2))
    assert wrong(replace(made, trains=True), "bf16") == check.MATCH
    *_, of_x, of_y, _, _ = run(made.function(), [torch.ones(2), torch.ones(2)], EAGER, trains=True)
    assert of_x.value.tolist() == [0, 0]
    assert of_y.value.tolist() != [0, 0]


@pytest.mark.parametrize(
    "made",
    [
        program("x.clamp(min=0)", "-v0", "v1.max()", x=torch.tensor([-0.0, -3.0])),
        program("x.index_reduce(0, torch.tensor([0]), -x, 'amax')", x=torch.zeros(1, 9)),
    ],
)
def test_an_op_may_choose_the_sign_of_a_zero(made: Program) -> None:
    (expected,) = made.function()(made.inputs["x"])
    assert difference(-expected, expected, others(made)) == ""
    assert difference(expected + 1, expected, others(made)) != ""


def test_a_quotient_by_what_may_be_zero_may_be_infinite() -> None:
    made = program("x - x.exp().log()", "1 / (v0 + 1e-7)", x=torch.tensor([1.0, 2.0]))
    (expected,) = made.function()(made.inputs["x"])
    assert difference(torch.full((2,), inf), expected, others(made)) == ""
    plain = program("1 / x", x=torch.tensor([0.0, 2.0, 1e-30]))
    assert "(2 wrong)" in difference(torch.full((3,), inf), torch.tensor([inf, 0.5, 1e30]), others(plain))
    assert "(1 wrong)" in difference(torch.tensor([inf]), torch.tensor([0.0]), [torch.tensor([0.0])])


def test_decimals_may_be_rounded_after_a_product() -> None:
    assert wrong(program("x.round(decimals=1)", x=torch.tensor([0.451171875]).bfloat16()), "bf16") == check.MATCH


def test_terms_of_the_size_of_one_may_cancel() -> None:
    """Eager PyTorch has zeros here: the logarithm of a probability of 0.9999, and the slope of gelu at -6.5."""
    near_one = program("x.log_softmax(-1)", "v0.sgn()", x=torch.tensor([5.3203, -3.748]).half())
    assert wrong(replace(near_one, outputs=("v1",)), "compile") == check.MATCH
    whole = program("torch.log_softmax(x, 0, dtype=torch.float32)", x=torch.tensor([3, 1], dtype=torch.int8))
    assert wrong(whole, "bf16") == check.MATCH
    steep = program("torch.nn.functional.gelu(x)", "v0.mul_(2**40)", x=torch.tensor([6.25, -6.5] * 16).bfloat16())
    assert wrong(replace(steep, outputs=("v0",), trains=True), "compile") == check.MATCH


def test_a_number_by_which_a_result_jumps_is_rounded_to_the_dtype_of_the_device() -> None:
    assert wrong(program("torch.fmod(x, 0.001)", x=torch.arange(-4, 5)), "bf16") == check.MATCH


def test_a_sum_with_a_rounded_product_may_be_zero() -> None:
    made = program("x.sub(y, alpha=0.1)", "v0.bool()", x=torch.tensor([0.1621, 8.0]), y=torch.tensor([1.61, 8.0]))
    (expected,) = replace(made, outputs=("v1",)).function()(*made.inputs.values())
    moved = []
    for seed in range(8):
        with OtherRoundings(seed, bf16=True):
            moved.append(replace(made, outputs=("v1",)).function()(*made.inputs.values())[0])
    assert expected.tolist() == [True, True]
    assert difference(torch.tensor([False, True]), expected, moved) == ""
    assert "(1 wrong)" in difference(torch.tensor([True, False]), expected, moved)


def test_moved_numbers_are_exact() -> None:
    made = program("x[1:].flip(0)", x=torch.tensor([1.0, 2.0, 3.0]))
    (expected,) = made.function()(*made.inputs.values())
    assert all(torch.equal(other, expected) for other in others(made))


# --- what is seen of a program


def seen_difference(*texts: str, instead: str, trains: bool = False) -> str:
    """How `instead` departs from the last text, by the rules that judge a compiled program."""
    made, other = (program(*texts[:-1], last, x=torch.ones(2, 3)) for last in (texts[-1], instead))
    made, other = (replace(p, outputs=("v0", p.outputs[0]), trains=trains) for p in (made, other))
    expected, got = ([*run(p.function(), list(p.inputs.values()), EAGER, trains)] for p in (made, other))
    return check._departure(made, got, expected, [])


@pytest.mark.parametrize(
    ("text", "instead", "found"),
    [
        ("v0.t()", "v0.t().contiguous()", "strides (2, 1), expected (1, 3)"),
        ("v0.view(-1)", "v0.flatten().clone()", "shares memory with v1, expected v0"),
        ("v0 * -0.0", "v0 * 0.0", "0.0 at [0, 0], expected -0.0 (6 wrong)"),
        ("v0 + 1", "v0 + 1.001", "3.000999927520752 at [0, 0], expected 3.0 (6 wrong)"),
        ("v0 * 2", "v0 * 2 * 1", ""),
    ],
)
def test_strides_memory_and_signs_are_compared(text: str, instead: str, found: str) -> None:
    assert seen_difference("x * 2", text, instead=instead).removeprefix("v1: ") == found


def test_writes_beside_an_input_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(function: Callable[..., Any], examples: object) -> Callable[..., Any]:
        def broken(x: torch.Tensor, y: torch.Tensor) -> Any:
            results = function(x, y)
            x.as_strided((1,), (1,), 3).fill_(7)
            return results

        return broken

    monkeypatch.setitem(WAYS, "broken", Way(compiled))  # type: ignore[misc]
    base, other = torch.arange(6.0), torch.arange(6.0)
    made = program("x + y", x=base[::2], y=other[::2])
    assert wrong(made, "broken") == "memory around x: 7.0 at [1], expected 3.0 (1 wrong)"
    assert wrong(made, "compile") == check.MATCH
    assert wrong(program("x * y", x=base[::2], y=base[3:4]), "compile") == check.MATCH


def test_gradients_and_the_optimizers_writes_are_compared() -> None:
    assert seen_difference("x * 2", "v0.exp()", instead="v0.exp() * 1", trains=True) == ""
    found = seen_difference("x * 2", "v0 * 1", instead="v0.detach() * 1", trains=True)
    assert found.startswith("v0: ")  # the second step's output depends on the first step's gradient
    found = seen_difference("x * 2", "torch.zeros_like(v0)", instead="v0 * 0", trains=True)
    assert found == "v1: has gradients"
    found = seen_difference("x * 2", "v0 * 0", instead="torch.zeros_like(v0)", trains=True)
    assert found == "v1: has no gradients"
    made = replace(program("x * 2", x=torch.ones(2, 3)), trains=True)
    output, x, gradient, _ = run(made.function(), list(made.inputs.values()), EAGER, trains=True)
    weights = torch.linspace(-1, 1, 6).reshape(2, 3)
    torch.testing.assert_close(gradient.value, 2 * weights)
    torch.testing.assert_close(x.value, torch.ones(2, 3) - 2 * 0.1 * 2 * weights)
    torch.testing.assert_close(output.value, 2 * (torch.ones(2, 3) - 0.1 * 2 * weights))


def test_errors_of_pytorchs_own_tracing_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(function: Function, inputs: Sequence[torch.Tensor], way: Way, trains: bool, *_: object) -> list[Seen]:
        seen = run(function, inputs, way, trains)
        return [replace(x, value=x.value + 1) for x in seen] if way in wrong_ways else seen

    monkeypatch.setattr(check, "run", broken)
    wrong_ways = [WAYS["compile"], TRACED]
    assert wrong(program("x * 2", x=torch.ones(3)), "compile") == check.AS_TRACED
    wrong_ways.pop()
    assert "3 wrong" in wrong(program("x * 2", x=torch.ones(3)), "compile")


def test_a_second_step_that_eager_does_not_define_is_not_trained() -> None:
    large = program("x.asin()", "torch.nn.functional.hardtanh(x, -5, 0.0)", "v0 * v1", x=torch.tensor([3.0, 0.5]))
    assert not trainable(large)  # its first gradient is NaN
    assert trainable(replace(large, inputs={"x": torch.tensor([0.3, 0.5])}))


def test_float16_may_be_computed_in_float32() -> None:
    halves = torch.tensor([60.625, -583.5, 2049.0]).half()
    assert wrong(program("x.diff()", "v0.frac()", x=halves), "compile") == check.IN_DTYPE
    large = program("x.half()", "torch.nn.functional.gelu(x)", "x[1:]", x=torch.tensor([1.0, 3e38]).double())
    # PyTorch's float32 loop for AVX-512 gives another number for 3e38 than the one for AVX2.
    found = {"AVX512": check.IN_DTYPE, "AVX2": check.MATCH}[torch.backends.cpu.get_cpu_capability()]
    assert wrong(replace(large, outputs=("v0", "v1", "v2")), "compile") == found
    alone = program("torch.nn.functional.layer_norm(x, x.shape[-1:])", x=torch.tensor([-125.883339]))
    assert wrong(alone, "bf16") == check.IN_DTYPE
    made = program("x.half()", "v0.sum(0, dtype=torch.float64)", "v1.float()", x=torch.ones(2))
    for dtype, last in ((torch.float32, "v1.float()"), (torch.bfloat16, "v1.to(torch.bfloat16)")):
        texts = [s.text for s in made.in_dtype(dtype).statements]
        rounded = "in_float16(x)" if dtype is torch.float32 else "x"
        filled = program("torch.ones_like(x, dtype=torch.float16)", x=torch.ones(2)).in_dtype(dtype)
        assert filled.statements[0].text == f"torch.ones_like(x, dtype={dtype})"
        assert texts == [f"{rounded}.to({dtype})", f"v0.sum(0, dtype={dtype})", last]
    gaps = program("x * 1", x=torch.arange(6.0).half()[1::2]).in_dtype(torch.float32).inputs["x"]
    assert (gaps.tolist(), gaps.stride(), gaps.storage_offset()) == ([1, 3, 5], (2,), 1)


def test_other_departures_of_float16_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_more(function: Function, examples: Sequence[Any]) -> Function:
        return lambda *args: [x + 1 for x in function(*args)]

    monkeypatch.setitem(check.WAYS, "wrong", Way(one_more))  # type: ignore[index]
    found = wrong(program("x * 2", x=torch.ones(3).half()), "wrong")
    assert found == "v0: 3.0 at [0], expected 2.0 (3 wrong)"

"""The fuzzer: it makes programs of all kinds, sees errors, lets roundings pass, and shrinks what it finds."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from forked import Server
from torch import inf
from typer.testing import CliRunner

from tt_torch.dynamo.types import Function
from tt_torch.fuzz import check
from tt_torch.fuzz.check import shrunk, source, wrong
from tt_torch.fuzz.cli import _again
from tt_torch.fuzz.meshes import Split
from tt_torch.fuzz.programs import Program, Statement, trainable
from tt_torch.fuzz.tolerance import OtherRoundings, difference
from tt_torch.fuzz.ways import EAGER, WAYS, Seen, Way, run
from tt_torch.tools.cli import app
from tt_torch.torch_private.sharded_norms import HANDLERS

# --- what counts as a difference


def program(*texts: str, **inputs: torch.Tensor) -> Program:
    """`v0 = texts[0]`, and so on; the last one is the output."""
    words = [tuple(dict.fromkeys(re.findall(r"\b[xyv]\d*\b", text))) for text in texts]
    statements = tuple(Statement(f"v{i}", text, words[i]) for i, text in enumerate(texts))
    return Program(inputs, statements, (statements[-1].result,))


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
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_errors_of_ops_with_rules_of_their_own_are_seen(text: str, dtype: torch.dtype) -> None:
    """An op that may lose digits or choose the sign of a zero must still be right for numbers that lose none."""
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


def test_numbers_are_equal_that_other_roundings_make_equal() -> None:
    x = torch.tensor([1.0, 1.25])
    with OtherRoundings(None, bf16=True):
        assert (x == 1.01).tolist() == [True, False]
        assert (x != 1.01).tolist() == [False, True]
        assert torch.isin(x, torch.tensor([1.01, 7])).tolist() == [True, False]
        assert (torch.tensor([256, 257]) == 256).tolist() == [True, False]


def test_a_difference_is_reported_after_more_roundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eager would have to be wrong by 1 % in all of them. A rounding that moves far in one of many runs is enough."""
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
    """For isin they are not those of the kernel, which gives dense results."""
    x = torch.ones(5, 3).t()
    assert wrong(program("torch.isin(x, x[0])", x=x), "compile") == check.AS_TRACED
    beside_nonzero = program("x.nonzero()", "torch.isin(x, x[0])", x=x)
    assert wrong(replace(beside_nonzero, outputs=("v0", "v1")), "compile") == check.AS_TRACED


def test_a_gradient_of_zeros_is_as_good_as_none() -> None:
    """Tracing gives one for an input that is only written without gradients, and eager PyTorch gives none."""
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


def test_moved_numbers_are_exact() -> None:
    made = program("x[1:].flip(0)", x=torch.tensor([1.0, 2.0, 3.0]))
    (expected,) = made.function()(*made.inputs.values())
    assert all(torch.equal(other, expected) for other in others(made))


# --- shrinking


def test_a_wrong_op_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, forks: Server) -> None:
    """A way that computes one op wrongly: the smallest program is that op."""

    def compiled(function: Callable[..., Any], examples: object) -> Callable[..., Any]:
        def broken(*inputs: torch.Tensor) -> Any:
            with monkeypatch.context() as patch:
                patch.setattr(torch.Tensor, "cumsum", lambda x, dim: x)
                return function(*inputs)

        return broken

    monkeypatch.setitem(WAYS, "broken", Way(compiled))  # type: ignore[misc]
    made = program("x.exp()", "v0 * 2", "v1.cumsum(0)", "v2 + x", "v3.relu()", x=torch.tensor([1.0, 2.0, 3.0]))
    smallest, found = shrunk(made, "broken", wrong(made, "broken"))
    assert [s.text for s in smallest.statements if "cumsum" in s.text] == ["v1.cumsum(0)"]
    assert len(smallest.statements) <= 3
    assert found == wrong(smallest, "broken")
    assert "wrong" in found
    (tmp_path / "found.py").write_text(source(smallest, "tt"))
    done = forks.run(tmp_path / "found.py")
    assert done.returncode == 0, done.stderr
    eager, on_tt = done.stdout.split("tt:\n")
    assert eager.removeprefix("eager:\n") == on_tt
    assert "tensor(" in on_tt


def test_a_script_has_inputs_of_the_same_layout() -> None:
    memory = torch.arange(12.0)
    for x in (memory.reshape(3, 4).t(), memory[2:], memory.as_strided((3, 3), (2, 1), 1), memory[:1].expand(4)):
        again = eval(check._literal(x), {"torch": torch})
        assert torch.equal(again, x)
        assert (again.stride(), again.storage_offset()) == (x.stride(), x.storage_offset())


# --- what is seen of a program


def seen_difference(*texts: str, instead: str, trains: bool = False) -> str:
    """How `instead` departs from the last text, by the same rules as a program that was compiled."""
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


def test_errors_of_pytorchs_own_tracing_are_told_apart() -> None:
    empty_view = program("x * 1", "v0.unfold(0, 0, 1)", "v1.zero_()", x=torch.tensor([1.0, 2.0]))
    written = Program(empty_view.inputs, empty_view.statements, ("v0",))
    assert wrong(written, "compile") == check.AS_TRACED
    assert wrong(written, "tt") == check.MATCH


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
        assert texts == [f"x.to({dtype})", f"v0.sum(0, dtype={dtype})", last]
    gaps = program("x * 1", x=torch.arange(6.0).half()[1::2]).in_dtype(torch.float32).inputs["x"]
    assert (gaps.tolist(), gaps.stride(), gaps.storage_offset()) == ([1, 3, 5], (2,), 1)


def test_other_departures_of_float16_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_more(function: Function, examples: Sequence[Any]) -> Function:
        return lambda *args: [x + 1 for x in function(*args)]

    monkeypatch.setitem(check.WAYS, "wrong", Way(one_more))  # type: ignore[index]
    found = wrong(program("x * 2", x=torch.ones(3).half()), "wrong")
    assert found == "v0: 3.0 at [0], expected 2.0 (3 wrong)"


def test_a_program_that_ended_in_an_error_is_repeated_by_its_file() -> None:
    text = _again({"seed": 3, "way": "tt", "length": 6}, {"verdict": "crash", "message": "killed\nby signal 11"})
    comment, rest = text.split("from tt_torch")
    assert comment == "# crash: killed\n# by signal 11\n"
    assert rest.endswith("print(run_seed(seed=3, way='tt', length=6))\n")


def test_the_command_counts_and_refuses_wrong_options(tmp_path: Path, forks: Server) -> None:
    good = forks.run("-m", "tt_torch.tools.cli", "fuzz", "--count", "3", "--way", "tt", "-o", tmp_path)
    assert good.returncode == 0, good.stderr
    assert "3 programs" in good.stdout
    for options, said in (([], "--minutes"), (["--count", "1", "--way", "nowhere"], "nowhere")):
        refused = CliRunner().invoke(app, ["fuzz", *options])
        assert refused.exit_code == 2 and said in refused.output


def test_a_script_has_inputs_that_overlap() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    statements = Statement("v0", "x1.mul_(2)", ("x1",)), Statement("v1", "x0 + 1", ("x0",))
    program = Program({"x0": x, "x1": x[1]}, statements, ("v0", "v1"))
    scope: dict[str, Any] = {"torch": torch}
    exec("\n".join(line for line in check.source(program, "compile").splitlines() if line.startswith("x")), scope)
    scope["x1"].mul_(2)
    assert torch.equal(scope["x0"], torch.tensor([[0.0, 1, 2], [6, 8, 10]]))
    assert check.wrong(program, "compile") == check.MATCH
    assert check.wrong(program, "aot") == check.REFUSED


# --- on chips


def test_a_wrong_number_on_chips_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without our handler, DTensor returns the operand of a shift."""
    x = torch.arange(8, dtype=torch.int32).reshape(2, 4)
    made = replace(program("x + 0", "v0 << 2", "v1 + 0", x=x), split=Split((1, 2), {"x": (None, 1)}))
    assert check.wrong(made, "mesh-eager") == check.MATCH
    for name in ("Tensor", "Scalar"):
        monkeypatch.delitem(HANDLERS, getattr(torch.ops.aten.__lshift__, name))
    smallest, found = shrunk(made, "mesh-eager", wrong(made, "mesh-eager"))
    assert "wrong" in found and smallest.statements[0].text == "v0 << 2"
    assert "split=Split(mesh=(1, 2), inputs={'v0': (None, None)})" in source(smallest, "mesh-eager")


def test_what_dtensor_does_not_do_is_refused() -> None:
    split = Split((1, 2), {"x": (None, 0)})
    assert wrong(replace(program("x.cumsum_(0)", x=torch.ones(4)), split=split), "mesh-eager") == check.REFUSED
    assert wrong(replace(program("x + 1", x=torch.ones(3)), split=split), "mesh") == check.REFUSED

"""The fuzzer: it makes programs of all kinds, sees errors, lets roundings pass, and shrinks what it finds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tt_torch.fuzz import check
from tt_torch.fuzz.check import run_seed, shrunk, source, wrong
from tt_torch.fuzz.programs import FAMILIES, Program, Statement, generate
from tt_torch.fuzz.tolerance import OtherRoundings, difference


@pytest.mark.filterwarnings("ignore")
def test_a_seed_gives_the_same_program_each_time() -> None:
    for seed in range(20):
        first, second = generate(seed, 6), generate(seed, 6)
        assert first.source() == second.source()
        assert all(map(torch.equal, map(_bits, first.inputs.values()), map(_bits, second.inputs.values())))


def _bits(x: torch.Tensor) -> torch.Tensor:
    return x.nan_to_num(7) if x.dtype.is_floating_point else x


@pytest.mark.filterwarnings("ignore")
def test_programs_are_of_all_kinds() -> None:
    programs = [generate(seed, 6) for seed in range(150)]
    assert {x.dtype for p in programs for x in p.inputs.values()} >= {torch.float32, torch.bfloat16, torch.bool}
    assert {x.dim() for p in programs for x in p.inputs.values()} >= {0, 1, 2, 3, 4}
    assert any(x.numel() == 0 for p in programs for x in p.inputs.values())
    assert sum(len(p.statements) >= 4 for p in programs) > 75
    texts = "\n".join(s.text for p in programs for s in p.statements)
    for name, words in {"writes": "_(", "indexing": "scatter", "reductions": "sum(", "shapes": "transpose"}.items():
        assert name in FAMILIES
        assert words in texts


@pytest.mark.parametrize("way", ["compile", "aot", "tt"])
def test_programs_agree_with_eager(way: str) -> None:
    """`tt-torch fuzz` runs more of them; these show that each way works."""
    records = [run_seed(seed, way, 6) for seed in range(4 if way != "tt" else 40)]
    assert {record["verdict"] for record in records} <= set(check.NO_FINDING), records
    assert "match" in {record["verdict"] for record in records}


# --- what counts as a difference


def program(*texts: str, **inputs: torch.Tensor) -> Program:
    """`v0 = texts[0]`, and so on; the last one is the output."""
    words = [tuple(dict.fromkeys(re.findall(r"\b[xyv]\d*\b", text))) for text in texts]
    statements = tuple(Statement(f"v{i}", text, words[i]) for i, text in enumerate(texts))
    return Program(inputs, statements, (statements[-1].result,))


def others(of: Program) -> list[torch.Tensor]:
    with_errors = []
    for seed in range(4):
        with OtherRoundings(seed):
            with_errors.append(of.function()(*of.inputs.values())[0])
    return with_errors


def test_a_difference_of_nearly_equal_numbers_may_be_far_off() -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    made = program("x.exp() - x.exp() * 1.0000001", x=x)
    (expected,) = made.function()(x)
    assert difference(expected * 1.5, expected, others(made)) == ""
    assert "wrong" in difference(expected + 1e-3, expected, others(made))


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


def test_only_an_unstable_comparison_may_differ() -> None:
    made = program("x.exp() == y.exp()", x=torch.tensor([1.0, 1.0]), y=torch.tensor([1.0, 2.0]))
    (expected,) = made.function()(*made.inputs.values())
    assert difference(torch.tensor([False, False]), expected, others(made)) == ""
    assert "at [1]" in difference(torch.tensor([True, True]), expected, others(made))


def test_moved_numbers_are_exact() -> None:
    made = program("x[1:].flip(0)", x=torch.tensor([1.0, 2.0, 3.0]))
    (expected,) = made.function()(*made.inputs.values())
    assert all(torch.equal(other, expected) for other in others(made))


# --- shrinking


def test_a_wrong_op_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A way that computes one op wrongly: the smallest program is that op."""

    def broken(function: object, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        with monkeypatch.context() as patch:
            patch.setattr(torch.Tensor, "cumsum", lambda x, dim: x)
            return [*function(*inputs), *inputs]  # type: ignore[operator]

    monkeypatch.setitem(check.WAYS, "broken", broken)
    made = program("x.exp()", "v0 * 2", "v1.cumsum(0)", "v2 + x", "v3.relu()", x=torch.tensor([1.0, 2.0, 3.0]))
    smallest, found = shrunk(made, "broken", wrong(made, "broken"))
    assert [s.text for s in smallest.statements if "cumsum" in s.text] == ["v1.cumsum(0)"]
    assert len(smallest.statements) <= 3
    assert found == wrong(smallest, "broken")
    assert "wrong" in found
    (tmp_path / "found.py").write_text(source(smallest))
    done = subprocess.run([sys.executable, tmp_path / "found.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("tensor") == 2


def test_errors_of_pytorchs_own_tracing_are_told_apart() -> None:
    empty_view = program("x * 1", "v0.unfold(0, 0, 1)", "v1.zero_()", x=torch.tensor([1.0, 2.0]))
    written = Program(empty_view.inputs, empty_view.statements, ("v0",))
    assert wrong(written, "compile") == check.AS_TRACED
    assert wrong(written, "tt") == check.MATCH


def test_the_command_counts_and_refuses_wrong_options(tmp_path: Path) -> None:
    run = [sys.executable, "-m", "tt_torch.tools.cli", "fuzz"]
    good = subprocess.run([*run, "--count", "3", "--way", "tt", "-o", tmp_path], capture_output=True, text=True)
    assert good.returncode == 0, good.stderr
    assert "3 programs" in good.stdout
    for options in ([], ["--count", "1", "--way", "nowhere"]):
        assert subprocess.run([*run, *options], capture_output=True).returncode == 2

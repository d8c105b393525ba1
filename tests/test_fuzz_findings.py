"""The fuzzer: it shrinks what it finds, writes it as a script, and finds wrong numbers on chips, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from forked import Server
from fuzz_texts import program
from typer.testing import CliRunner

from tt_torch.fuzz import check
from tt_torch.fuzz.check import shrunk, source, wrong
from tt_torch.fuzz.cli import _again
from tt_torch.fuzz.meshes import Split
from tt_torch.fuzz.programs import Program, Statement
from tt_torch.fuzz.ways import WAYS, Way
from tt_torch.tools.cli import app
from tt_torch.torch_private.sharded_norms import HANDLERS

# --- shrinking


def test_a_wrong_op_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, forks: Server) -> None:
    """A way computes `cumsum` wrongly. The smallest program still has this op, and at most three statements."""

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


def test_a_product_with_a_sum_over_chips_has_zeros_of_either_sign() -> None:
    """The chips multiply their parts, 2 and -3, by 0, and add 0.0 and -0.0."""
    made = program("x.sum(0)", "v0 * y", x=torch.tensor([[2.0], [-3.0]]), y=torch.zeros(1))
    split = Split((1, 2), {"x": (None, 0), "y": (None, None)})
    assert check.wrong(replace(made, split=split), "mesh-eager") == check.MATCH


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


def test_only_what_we_refuse_on_chips_is_refused() -> None:
    split = Split((1, 2), {"x": (None, 0)})
    for way in ("mesh", "mesh-eager"):
        refused = replace(program("x.masked_select(x > 0)", x=torch.ones(4, 2)), split=split)
        assert wrong(refused, way) == check.REFUSED
    of_pytorch = replace(program("torch.tensor(x.tolist())", x=torch.ones(4, 2)), split=split)
    assert wrong(of_pytorch, "mesh-eager").startswith("RuntimeError: .tolist() is not supported")
    assert wrong(replace(program("x + 1", x=torch.ones(3)), split=split), "mesh") == check.REFUSED

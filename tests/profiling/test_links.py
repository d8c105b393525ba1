"""What crosses between chips: bytes over the busiest link, and the profile of a program for a mesh."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from mesh_programs import norms, program
from torch_mlir import ir

from tests.commands import command
from tt_torch.config import CompilerConfig
from tt_torch.driver.compile import compile_module
from tt_torch.mlir.context import make_context
from tt_torch.mlir.mesh import set_mesh
from tt_torch.profiling import page, recorder, scaling
from tt_torch.profiling.cost_model import planned
from tt_torch.profiling.model import of_session
from tt_torch.profiling.session import Session
from tt_torch.profiling.what_if import AS_COMPILED
from tt_torch.wire.calls import public
from tt_torch.wire.chips import CHIPS, HOP
from tt_torch.wire.decode import decode

TILES = 12 * 4096  # bytes of a float32 tensor of 96x128 in tiles


def sent(text: str, mesh: tuple[int, int]) -> list[tuple[int, int]]:
    """The bytes over a link of each exchange of a program, and the links that are crossed one after the other."""
    with make_context():
        module = ir.Module.parse(text)
        set_mesh(module, mesh)
        message = decode(compile_module(module, CompilerConfig()))
    ops = [op for one in public(message) for op in planned(one, "Wormhole_b0")]
    for op in ops:
        assert op.cost.ideal.links == op.cost.link_bytes / CHIPS["Wormhole_b0"].link <= op.cost.full.links
    exchanges = [op.cost for op in ops if op.cost.link_bytes]
    return [(each.link_bytes, round((each.full.links - each.ideal.links) / HOP)) for each in exchanges]


@pytest.mark.parametrize(
    "op, factor, links", [("all_gather", 3, 3), ("reduce_scatter", 3 / 4, 3), ("all_reduce", 2 * 3 / 4, 6)]
)
def test_what_crosses_the_links_of_four_chips(op: str, factor: float, links: int) -> None:
    """Each of four chips in a line has the tensor. A part is a quarter of it."""
    kind = {"sizes": (128, 96)}
    assert sent(program(op, (1, 4), "rows", **kind), (1, 4)) == [(factor * TILES, links)]
    assert sent(program(op, (4, 1), "columns", **kind), (4, 1)) == [(factor * TILES, links)]


def test_a_sum_over_all_chips_crosses_columns_and_rows() -> None:
    assert sent(program("all_reduce", (2, 4), "all", sizes=(128, 96)), (2, 4)) == [(TILES, 2), (1.5 * TILES, 6)]


def test_a_norm_gathers_a_tile_of_statistics() -> None:
    for sizes in ((1, 32), (32, 2048)):
        assert sent(norms((2, 4), "rows", sizes), (2, 4)) == [(3 * 4096, 3)]
        assert sent(norms((2, 4), "columns", sizes, "bf16", 2), (2, 4)) == [(4096, 1)] * 2


def test_a_profile_has_what_crosses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recording = Session(tmp_path, "Wormhole_b0")
    monkeypatch.setattr(recorder, "_session", recording)
    options = {"mesh_shape": (1, 4), "automatic_parallelization": True, "profile": str(tmp_path)}
    model, x = torch.nn.Linear(32, 8), torch.randn(8, 32)
    compiled = torch.compile(model, backend="tt", options=options)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-5)
    profile = of_session(recording)
    (gather,) = (op for op in profile.repeated if op.crossing)
    assert gather.op == "AllGatherOp" and gather.kind == "exchange between chips" and len(gather.host) == 2
    (row,) = page.exchanges(profile).rows
    assert [cell.value for cell in row if cell.value is not None][-1] == gather.crossing == 3 * 32 * 32 * 4
    assert profile.bound(gather) == "links"  # it waits for three links
    assert "links" in gather.modelled[profile.arch][AS_COMPILED]


def test_a_simulation_of_more_chips(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command prints what two programs of the step cost, with all layers. Here, the two are made up."""

    def made_up(card: str, mesh: tuple[int, int], layers: int) -> scaling.Figures:
        chips = mesh[0] * mesh[1]
        sums = {"AllReduceOp": {"number": 2 * layers, "bytes": 1e6 * layers, "seconds": 1e-4 * layers}}
        times = {"DRAM": 1e-3 * layers / chips, "links": 1e-4 * layers * (chips > 1), "arithmetic": 0}
        sizes = {"weights": 1e9 * layers / chips, "memory": 32 * 2**30, "ops": 9 * layers}
        return times | sizes | {"compiling": 1, "exchanges": sums}

    monkeypatch.setattr(scaling, "_in_process", made_up)
    rows = json.loads(command("profile", "--mesh", "--device", "p150", "--json").stdout)["meshes"]
    assert [row["mesh"] for row in rows] == [[1, 1], [1, 2], [1, 4], [1, 8], [4, 8]]
    assert rows[3]["seconds"] == pytest.approx(80 * (1e-3 / 8 + 1e-4))
    assert rows[3]["efficiency"] == pytest.approx(1e-3 / 8 / (1e-3 / 8 + 1e-4))
    assert rows[3]["exchanges"]["AllReduceOp"]["number"] == 160
    assert [row["fits"] for row in rows] == [False, False, True, True, True]
    text = command("profile", "--mesh").stdout
    assert "4x8" in text and "AllReduceOp" in text and "DRAM" in text


@pytest.mark.parametrize("options", ["", "--mesh x.py", "--mesh --device n9", "--device p150 x.py", "--mesh -o x"])
def test_a_wrong_call_of_a_simulation(options: str) -> None:
    failed = command("profile", *options.split())
    assert failed.exit_code == 2 and "Invalid value for" in failed.output


@pytest.mark.slow
def test_a_layer_of_llama_sends_two_sums() -> None:
    """On 32 chips, both sums of a token are over the columns, and the sum of the MLP is also over the rows."""
    alone, eight, grid = (scaling.cost(mesh, 1, "wormhole_b0") for mesh in ((1, 1), (1, 8), (4, 8)))
    assert alone["exchanges"] == {} and {*eight["exchanges"], *grid["exchanges"]} == {"AllReduceOp"}
    eight_sums, grid_sums = eight["exchanges"]["AllReduceOp"], grid["exchanges"]["AllReduceOp"]
    assert (eight_sums["number"], grid_sums["number"]) == (2, 3)
    of_a_sum = math.ceil(1 / 32) * 32 * 8192 * 2 * 2  # of bfloat16, twice: scattered and gathered
    assert eight_sums["bytes"] == 2 * of_a_sum * 7 / 8
    assert grid_sums["bytes"] == 2 * of_a_sum * 7 / 8 + of_a_sum * 3 / 4
    assert eight["weights"] < alone["weights"] / 7 and eight["memory"] == alone["memory"] == 12 * 2**30

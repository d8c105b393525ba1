"""Programs as graphs for Model Explorer, with data of a profile and a comparison; the adapter where it is installed."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import torch

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.errors import ModuleFormatError
from tt_torch.explore.graphs import Graph, add_comparison, add_profile, read_graphs


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explore")
    config = CompilerConfig(save_mlir=("STABLEHLO", "TTNN"), output_mlir_dir=str(folder), model_name="m")
    compiled = tt_torch.compile_model(
        lambda x, w: torch.softmax(x @ w, -1), (torch.ones(4, 8), torch.ones(8, 8)), config
    )
    compiled.save(folder / "m.ttnn")
    return folder


def paths(graph: Graph) -> list[str]:
    """What leads to the results, along first operands."""
    nodes = {node.id: node for node in graph.nodes}
    found = [graph.nodes[-1]]
    while found[-1].sources:
        found.append(nodes[found[-1].sources[0][0]])
    return [node.label for node in found]


def test_binary(files: Path) -> None:
    (graph,) = read_graphs(files / "m.ttnn")
    assert paths(graph) == ["results", "SoftmaxOp", "MatmulOp", "ToLayoutOp", "input 0"]
    by_label = {node.label: node for node in graph.nodes}
    assert by_label["MatmulOp"].namespace == "mm" and len(by_label["MatmulOp"].sources) == 2
    shown = by_label["SoftmaxOp"].outputs[0]
    assert shown["shape"] == "4x8" and shown["memory"] == "DRAM" and shown["layout"] == "tile"
    assert set(graph.data["model [ns]"]) == {n.id for n in graph.nodes if n.label.endswith("Op")}


@pytest.mark.parametrize(("level", "last"), [("stablehlo", "stablehlo.divide"), ("ttnn", "ttnn.softmax")])
def test_mlir(files: Path, level: str, last: str) -> None:
    (file,) = files.glob(f"*_{level}.mlir")
    graph = read_graphs(file)[0]
    labels = paths(graph)
    assert labels[0] == "func.return" and labels[-1] == "input 0"
    assert any(last.split(".")[1] in label for label in labels)


@pytest.mark.parametrize("text", [b"hello", b"\xff\xfe"])
def test_no_module(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "a.mlir").write_bytes(text)
    with pytest.raises(ModuleFormatError):
        read_graphs(tmp_path / "a.mlir")


def test_data_of_other_tools(files: Path, tmp_path: Path) -> None:
    (graph,) = read_graphs(files / "m.ttnn")
    by_label = {node.label: node for node in graph.nodes}
    with (tmp_path / "p.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["OP CODE", "LOC", "HOST DURATION [ns]", "PROGRAM_METADATA"])
        for call, duration in ((0, 900), (1, 70)):  # the last call counts
            metadata = f'{{"graph": 0, "program": "main", "call": {call}}}'
            table.writerow(["MatmulOp", by_label["MatmulOp"].attributes["location"], duration, metadata])
    (tmp_path / "c.csv").write_text("op,node,pcc\nToLayoutOp,mm,\nMatmulOp,mm,0.5\nSoftmaxOp,_softmax,0.25\n")
    add_profile([graph], tmp_path / "p.csv")
    add_comparison([graph], tmp_path / "c.csv")
    assert graph.data["host [ns]"] == {by_label["MatmulOp"].id: 70.0}
    assert graph.data["PCC"] == {by_label["MatmulOp"].id: 0.5, by_label["SoftmaxOp"].id: 0.25}


def test_adapter(files: Path) -> None:
    pytest.importorskip("model_explorer", reason="an option: pip install 'tt-torch[explore]'")
    from tt_torch.explore.main import TTAdapter

    (graph,) = TTAdapter().convert(str(files / "m.ttnn"), {})["graphs"]
    assert [node.label for node in graph.nodes][-1] == "results"
    assert graph.nodes[-1].incomingEdges[0].sourceNodeId == graph.nodes[-2].id

"""Programs as graphs for Model Explorer, with the data of a profile and of a comparison, and Model Explorer's page."""

from __future__ import annotations

import csv
import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import tt_torch
from tests.browser import Browser
from tt_torch.config import CompilerConfig
from tt_torch.errors import ModuleFormatError, ProfileFormatError
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
    """The labels of the nodes from the results back to an input, along the first operand of each node."""
    nodes = {node.id: node for node in graph.nodes}
    found = [graph.nodes[-1]]
    while found[-1].sources:
        found.append(nodes[found[-1].sources[0][0]])
    return [node.label for node in found]


def test_binary(files: Path) -> None:
    (graph,) = read_graphs(files / "m.ttnn")
    assert paths(graph) == ["results", "SoftmaxOp", "MatmulOp", "ToLayoutOp", "input 0"]
    assert graph.attributes == {}
    by_label = {node.label: node for node in graph.nodes}
    assert by_label["MatmulOp"].namespace == "mm" and len(by_label["MatmulOp"].sources) == 2
    shown = by_label["SoftmaxOp"].outputs[0]
    assert shown["shape"] == "4x8" and shown["memory"] == "DRAM" and shown["layout"] == "tile"
    assert set(graph.data["model [ns]"]) == {n.id for n in graph.nodes if n.label.endswith("Op")}


def test_a_program_on_a_mesh() -> None:
    (graph,) = read_graphs(Path(__file__).parents[1] / "data" / "plugin" / "tensor_parallel_2x4.ttnn")
    assert graph.attributes == {"mesh": "2x4 chips; sizes are those of one chip"}
    (exchange,) = (node for node in graph.nodes if node.label == "AllReduceOp")
    assert exchange.attributes["cluster_axis"] == "1"
    assert graph.data["bytes over a link"] == {
        exchange.id: 2 * 3 / 4 * 32 * 512 * 2
    }  # bfloat16, scattered and gathered


@pytest.mark.parametrize("suffix", ["ttnn", "mlir"])
def test_parts_of_tensors_are_shown(suffix: str, tmp_path: Path) -> None:
    """In the L1 of cores, and in the banks of DRAM."""
    model, x = torch.nn.Linear(1024, 2816, bias=False).eval(), torch.ones(1, 1024)
    config = CompilerConfig(dtype="bf16", optimization_level=2, enable_dram_sharded_matmul=True)
    config.save_mlir, config.output_mlir_dir = ("TTNN",), str(tmp_path)
    tt_torch.compile_model(model, (x,), config).save(tmp_path / "net.ttnn")
    (file,) = tmp_path.glob(f"*.{suffix}")
    places = {out["memory"] for graph in read_graphs(file) for node in graph.nodes for out in node.outputs}
    assert places >= {
        "DRAM",
        "L1, WidthSharded in 32x256",
        "L1, WidthSharded in 32x64",
        "DRAM, WidthSharded in 1024x256",
    }


def test_a_package_has_the_graphs_of_its_programs(files: Path) -> None:
    model = torch.nn.Linear(8, 8)
    tt_torch.compile_model(model.eval(), (torch.ones(4, 8),)).save(files / "one.ttpkg")
    (graph,) = (graph for graph in read_graphs(files / "one.ttpkg") if graph.name == "main")
    assert "LinearOp" in {node.label for node in graph.nodes}
    tt_torch.compile_model(model.train(), (torch.ones(4, 8),), training=True).save(files / "two.ttpkg")
    names = {graph.name for graph in read_graphs(files / "two.ttpkg")}
    assert {"main: main", "backward/main: main"} <= names


@pytest.mark.parametrize(("level", "last"), [("stablehlo", "stablehlo.divide"), ("ttnn", "ttnn.softmax")])
def test_mlir(files: Path, level: str, last: str) -> None:
    (file,) = files.glob(f"*_{level}.mlir")
    graph = read_graphs(file)[0]
    assert set(graph.data.get("layout", {}).values()) == ({"Float32 tile, DRAM"} if level == "ttnn" else set())
    labels = paths(graph)
    assert labels[0] == "func.return" and labels[-1] == "input 0"
    assert any(last.split(".")[1] in label for label in labels)


@pytest.mark.parametrize("text", [b"hello", b"\xff\xfe"])
def test_no_module(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "a.mlir").write_bytes(text)
    with pytest.raises(ModuleFormatError):
        read_graphs(tmp_path / "a.mlir")


@pytest.fixture(scope="module")
def tables(files: Path) -> tuple[Path, Path]:
    """Files as `tt-torch profile` and `tt-torch verify` write them. The profile has two calls."""
    (graph,) = read_graphs(files / "m.ttnn")
    location = next(n for n in graph.nodes if n.label == "MatmulOp").attributes["location"]
    profile, comparison = files / "profile.csv", files / "comparison.csv"
    with profile.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["OP CODE", "LOC", "HOST DURATION [ns]", "PROGRAM_METADATA"])
        for call, duration in ((0, 900), (1, 70)):  # the graph shows the last call
            where = {"graph": 0, "program": "main", "call": call, "op": "MatmulOp"}
            table.writerow(["MatmulDeviceOperation", location, duration, json.dumps(where)])
    comparison.write_text("op,node,pcc\nToLayoutOp,mm,\nMatmulOp,mm,0.5\nSoftmaxOp,_softmax,0.25\n")
    return profile, comparison


def test_data_of_other_tools(files: Path, tables: tuple[Path, Path]) -> None:
    programs = {"m.ttnn": ("MatmulOp", "SoftmaxOp"), "*_ttnn.mlir": ("ttnn.matmul", "ttnn.softmax")}
    programs["*_stablehlo.mlir"] = ("stablehlo.dot", "chlo.broadcast_divide")  # the last op of the softmax
    for file, ops in programs.items():
        graph = read_graphs(next(files.glob(file)))[0]
        add_profile([graph], tables[0])
        add_comparison([graph], tables[1])
        product, softmax = (next(n.id for n in graph.nodes if n.label == op) for op in ops)
        assert graph.data["host [ns]"] == {product: 70}
        assert graph.data["PCC"] == {product: 0.5, softmax: 0.25}


@pytest.mark.parametrize(
    "table",
    [b"a,b\n1,2\n", b"\xff\xfe\0", b"op,node,pcc\nMatmulOp,mm,high\n"]
    + [b"PROGRAM_METADATA,HOST DURATION [ns],LOC\n%s,1,x\n" % where for where in (b"{", b"{}", b"7")],
)
def test_a_file_that_no_tool_of_ours_wrote(files: Path, tmp_path: Path, table: bytes) -> None:
    graphs = read_graphs(files / "m.ttnn")
    (tmp_path / "table.csv").write_bytes(table)
    for add in (add_profile, add_comparison):
        with pytest.raises(ProfileFormatError, match=r"table.csv is not a (profile|comparison) of this version"):
            add(graphs, tmp_path / "table.csv")


def test_a_profile_of_several_graphs(files: Path, tmp_path: Path) -> None:
    """All programs are named main. The file has the second graph, and the last call is a call of the first graph."""
    (graph,) = read_graphs(files / "m.ttnn")
    ops = [(node.label, node.attributes["location"]) for node in graph.nodes if node.label.endswith("Op")]
    calls = [(0, 0, [*ops, ("AddOp", "loc(unknown)")]), (1, 0, ops), (0, 1, ops[:-1]), (1, 1, ops), (0, 2, ops[:-1])]

    def write(calls: list[tuple[int, int, list[tuple[str, str]]]]) -> Path:
        with (tmp_path / "profile.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["OP CODE", "LOC", "HOST DURATION [ns]", "PROGRAM_METADATA"])
            for number, call, rows in calls:
                for op, location in rows:
                    where = json.dumps({"graph": number, "program": "main", "call": call, "op": op})
                    table.writerow(["", location, 10 * number + call, where])
        return tmp_path / "profile.csv"

    add_profile([graph], write(calls))
    assert set(graph.data["host [ns]"]) == {node.id for node in graph.nodes if node.label.endswith("Op")}
    assert set(graph.data["host [ns]"].values()) == {11}
    with pytest.warns(UserWarning, match="the graphs 4, 7 in .* the times of graph 4 are shown"):
        add_profile([graph], write([(4, 0, ops), (7, 3, ops)]))
    assert set(graph.data["host [ns]"].values()) == {40}
    add_profile([graph], write([]))
    assert graph.data["host [ns]"] == {}


@pytest.fixture(scope="module")
def address(files: Path, tables: tuple[Path, Path]) -> Iterator[str]:
    """The address at which `tt-torch explore` serves Model Explorer."""
    pytest.importorskip("model_explorer", reason="an option: pip install 'tt-torch[explore]'")
    with socket.create_server(("", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tt_torch.tools.cli", "explore", "m.ttnn", "--no-browser", "--port", str(port)]
    command += ["--profile", str(tables[0]), "--comparison", str(tables[1])]
    with subprocess.Popen(command, cwd=files, stdout=subprocess.PIPE, text=True, bufsize=1) as server:
        assert server.stdout is not None
        yield next(line.strip() for line in server.stdout if line.startswith("http"))
        server.kill()


# The last table of the page has a row for each op. The drawing is a canvas.
TABLE = """
const rows = [...document.querySelectorAll('tr')].map(row => [...row.cells].map(cell => cell.innerText.trim()));
rows.slice(rows.findLastIndex(row => row[0].startsWith('#')))
"""
NAME = (
    "[...document.querySelectorAll('td.node-label')].findLast(cell => cell.innerText == '{}').getBoundingClientRect()"
)
DRAWING = "document.querySelector('canvas').getBoundingClientRect()"
SELECTED = r"/op name\s+{}\s/.test(document.body.innerText)"


def test_page(address: str, tmp_path: Path) -> None:
    """The page has each op with its data. A click on a row of the table moves the drawing to the op.

    A click on the op in the drawing shows its tensors.
    """
    with Browser(tmp_path) as browser:
        browser.open(address)
        browser.wait("document.body.innerText.includes('0.25')")
        head, *rows = browser.run(TABLE)
        measures = [cell.split("\n")[1] for cell in head[2:]]  # the lines are a number, the name and an icon
        ops = {row[1]: dict(zip(measures, row[2:], strict=True)) for row in rows}
        assert {"input 0", "ToLayoutOp", "MatmulOp", "SoftmaxOp", "results"} <= set(ops)
        assert ops["MatmulOp"]["layout"] == "Float32 tile, DRAM" and ops["MatmulOp"]["DRAM [bytes]"] == str(3 * 4096)
        assert ops["MatmulOp"]["PCC"] == "0.5" and ops["MatmulOp"]["host [ns]"] == "70"
        assert float(ops["SoftmaxOp"]["model [ns]"]) > 0 and ops["SoftmaxOp"]["PCC"] == "0.25"
        browser.settle()
        browser.click(NAME.format("SoftmaxOp"))  # moves the op to the middle of the drawing
        browser.settle()
        browser.click(DRAWING)
        browser.wait(SELECTED.format("SoftmaxOp"))
        browser.keep("explore")
        info = browser.text().partition("NODE INFO")[2]
        assert re.search(r"PCC\s+0.25\s", info) and re.search(r"INPUTS \(1\)\s+0\s+MatmulOp\s", info)
        assert re.search(r"dtype\s+Float32\s.*layout\s+tile\s.*memory\s+DRAM\s.*shape\s+4x8\s", info, re.DOTALL)

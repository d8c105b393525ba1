"""The cost model agrees with known figures, planned memory with the runtime. `tt-torch profile` writes its files."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
from pathlib import Path

import pytest
import torch
from forked import Server
from typer.testing import CliRunner

import tt_torch
from tt_torch.profiling.cost_model import cost_of, matrix_flops, planned
from tt_torch.profiling.model import read_json
from tt_torch.profiling.session import OpRun, Session
from tt_torch.profiling.tables import write_csv
from tt_torch.runtime import Binary, Device, Executable
from tt_torch.tools.cli import app
from tt_torch.wire.calls import device_ops, public
from tt_torch.wire.chips import CHIPS
from tt_torch.wire.decode import decode

DATA = Path(__file__).parents[1] / "data" / "wire"
PROGRAM = """
import sys, torch
from tt_torch.config import BackendOptions, CompilerConfig
options = BackendOptions(compiler_config=CompilerConfig(enable_optimizer=True))
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Softmax(-1), torch.nn.Linear(64, 8)).eval()
compiled = torch.compile(model, backend="tt", options=options)
with torch.no_grad(), torch.profiler.profile() as recorded:
    for _ in range(2):
        compiled(torch.ones(4, 64))
assert sum(e.count for e in recorded.key_averages() if e.key == "tt_torch graph 0") == 2
"""


def read(name: str) -> dict:
    path = DATA / name
    return decode(gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes())


def test_cost_of_a_linear_op() -> None:
    (op,) = (op for op in device_ops(read("linear_relu.ttnn")) if op.name in ("LinearOp", "MatmulOp"))
    cost = cost_of(op, CHIPS["Wormhole_b0"])
    passes = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}[cost.fidelity]
    assert cost.flops == 2 * 10 * 64 * 32
    assert cost.ideal.arithmetic == pytest.approx(cost.flops * passes / 262.144e12)
    tiles = {"read": 2 + 2 + (op.record.get("bias") is not None), "written": 1}  # 10x64, 64x32 (or 32x64), bias
    assert cost.dram_read == tiles["read"] * 4096 and cost.dram_written == tiles["written"] * 4096
    assert cost.ideal.total == cost.ideal.dram == pytest.approx((cost.dram_read + cost.dram_written) / 288e9)
    assert cost.seconds > cost.ideal.total


def test_a_residual_costs_as_much_as_a_bias_as_an_addition() -> None:
    """The library writes the product and reads it again to add a bias of several rows."""
    linear, x = torch.nn.Linear(64, 64, bias=False).eval(), torch.zeros(64, 64)
    compiled = tt_torch.compile_model(lambda x: linear(x) + x, (x,))
    (cost,) = (op.cost for op in planned(*public(decode(compiled.binary)), "Wormhole_b0") if op.op.name == "LinearOp")
    assert (cost.dram_read, cost.dram_written) == (4 * 4 * 4096, 2 * 4 * 4096)


@pytest.mark.parametrize(
    ("dtype", "name", "read"),
    [
        (torch.bfloat16, "EmbeddingOp", 32 * 64),
        (torch.float32, "GatherOp", 100_000 * 64),  # ttnn's gather searches the columns, so it reads the whole table
    ],
)
def test_what_a_lookup_reads_and_writes(dtype: torch.dtype, name: str, read: int) -> None:
    table = torch.nn.Embedding(100_000, 64, dtype=dtype).eval()
    compiled = tt_torch.compile_model(table, (torch.zeros(1, 32, dtype=torch.int64),))
    (program,) = public(decode(compiled.binary))
    (lookup,) = (op for op in planned(program, "Wormhole_b0") if op.name == name)
    given, read = 32 * 64 * dtype.itemsize, read * dtype.itemsize
    assert read < lookup.cost.dram_read <= read + 2 * given  # the positions are read, too
    assert lookup.cost.dram_written == given
    assert lookup.cost.ideal.arithmetic == lookup.cost.full.arithmetic == 0


def test_a_gather_reads_only_the_rows_of_its_index() -> None:
    x, index = torch.zeros(8, 64, 4096), torch.zeros(8, 32, 32, dtype=torch.int64)
    compiled = tt_torch.compile_model(lambda x, index: x.gather(2, index), (x, index))
    (program,) = public(decode(compiled.binary))
    (lookup,) = (op for op in planned(program, "Wormhole_b0") if op.name == "GatherOp")
    assert lookup.cost.dram_read == 4 * (8 * 32 * 4096 + 8 * 32 * 32)


@pytest.mark.parametrize(
    ("name", "flops"),
    [
        ("resnet50_b1.ttnn.gz", 8.2e9),  # the paper's 4.1e9 multiply-adds
        ("bert_base_b1_s128.ttnn.gz", 22.35e9),  # 85e6 weights, 128 tokens, and attention
    ],
)
def test_flops_of_known_models(name: str, flops: float) -> None:
    assert sum(matrix_flops(op) for op in device_ops(read(name))) == pytest.approx(flops, rel=0.02)


def test_planned_memory_is_the_runtimes() -> None:
    """The two peaks differ only by the runtime's rounding to equally many pages in each of 12 banks."""
    x = torch.ones(512, 512)
    compiled = tt_torch.compile_model(lambda x: torch.softmax(x.sin() + x.exp(), -1), (x,))
    (program,) = public(decode(compiled.binary))
    with Device("wormhole_b0") as device:
        executable = Executable(Binary(compiled.binary), 0, device)
        executable([x])
        peak = executable.memory_stats()["dram_peak"]
    assert max(op.dram for op in planned(program, "Wormhole_b0")) == pytest.approx(peak, rel=0.04)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, forks: Server) -> Path:
    folder = tmp_path_factory.mktemp("profile")
    (folder / "program.py").write_text(PROGRAM)
    done = forks.run("-m", "tt_torch.tools.cli", "profile", "-o", "out", "program.py", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "out"


def test_csv(folder: Path) -> None:
    with (folder / "device_ops_perf_trace.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[:3] == ["OP CODE", "OP TYPE", "GLOBAL CALL COUNT"]
    assert list(rows[0])[-3:] == ["LOC", "CONST_EVAL_OP", "PROGRAM_METADATA"]
    assert [int(row["GLOBAL CALL COUNT"]) for row in rows] == list(range(len(rows)))
    last = [row for row in rows if json.loads(row["PROGRAM_METADATA"])["call"] == 1]
    linear = [row for row in last if json.loads(row["PROGRAM_METADATA"])["op"] == "LinearOp"]
    assert {row["OP CODE"] for row in linear} == {"MatmulDeviceOperation"}
    sizes = [[int(row[f"INPUT_{n}_{part}"]) for n in (0, 1) for part in "YX"] for row in linear]
    assert all(inner == again for _, inner, again, _ in sizes)  # as the library sees a weight that is read transposed
    for row in last:  # the times of the model
        assert row["DEVICE KERNEL DURATION [ns]"] == row["DEVICE FW DURATION [ns]"]
        assert float(row["DEVICE KERNEL DURATION [ns]"]) > float(row["PM IDEAL [ns]"])
        assert row["OP TO OP LATENCY [ns]"] == "700.0"
    assert [row["LOC"].split(":")[0] for row in linear] == ['loc("addmm', 'loc("addmm_1']
    assert linear[0]["MATH FIDELITY"] == "HiFi4" and linear[0]["OUTPUT_0_Y"] == "4" and linear[0]["OUTPUT_0_X"] == "64"
    assert all(float(row["PM IDEAL [ns]"]) > 0 and int(row["HOST DURATION [ns]"]) > 0 for row in last)
    assert any("_L1_" in row["OUTPUT_0_MEMORY"] for row in last)
    ends = [int(row["HOST END TS"]) for row in rows]
    assert ends == sorted(ends)


def test_a_view_takes_no_time(tmp_path: Path) -> None:
    """A reshape that starts no kernel has no time and no share of the DRAM bandwidth. All other ops take time."""
    (program,) = public(read("bert_base_b1_s128.ttnn.gz"))
    session = Session(tmp_path, "Wormhole_b0")
    session.runs = [OpRun("main", False, n, op, 0, 0, n, n + 1) for n, op in enumerate(planned(program, session.arch))]
    with write_csv(session).open() as file:
        rows = list(csv.DictReader(file))
    views = [row for row, run in zip(rows, session.runs, strict=True) if run.op.op.is_view]
    times = {(r["DEVICE KERNEL DURATION [ns]"], r["OP TO OP LATENCY [ns]"], r["DRAM BW UTIL (%)"]) for r in views}
    assert times == {("0.0", "0.0", "0.0")}
    assert min(float(row["DEVICE KERNEL DURATION [ns]"]) for row in rows if row not in views) > 0


def test_trace(folder: Path) -> None:
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    tracks = {thread: [e for e in events if e["ph"] == "X" and e["tid"] == thread] for thread in (1, 2)}
    assert [e["name"] for e in tracks[1]] == [e["name"] for e in tracks[2]] and tracks[1]
    for track in tracks.values():  # no two ops of a track overlap
        assert all(a["ts"] + a["dur"] <= b["ts"] + 1e-3 for a, b in itertools.pairwise(track))
    assert max(e["args"]["L1"] for e in events if e["ph"] == "C") > 0


@pytest.mark.parametrize(
    ("program", "status", "said"),
    [
        (["-m", "platform"], 1, "nothing was recorded"),
        (["exits.py"], 1, "the program ended with status 3"),
        (["true"], 2, "there is no Python file 'true'; give prog.py or -m MODULE"),
        (["model.ttpkg"], 1, "the program ended with status 1"),
        (["model.ttnn"], 1, "the program ended with status 1"),
        (["model.onnx"], 2, "'model.onnx' is no Python program; tt-torch compile compiles a model"),
        (["-m", "no.such"], 2, "there is no module 'no.such'"),
        (["-m"], 2, "there is no module"),
    ],
)
def test_a_program_without_a_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: list[str], status: int, said: str
) -> None:
    (tmp_path / "exits.py").write_text("exit(3)")
    for file in ("model.ttpkg", "model.ttnn", "model.onnx"):
        (tmp_path / file).write_bytes(bytes(8))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["profile", "-o", "out", *program])
    assert done.exit_code == status and done.stderr.startswith("error: ") and said in done.stderr, done.output
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("suffix", [".ttpkg", ".ttnn"])
def test_a_file_runs_as_by_run(tmp_path: Path, suffix: str) -> None:
    """A package or a binary names the lines of the model, and no modules."""
    compiled = tt_torch.compile_model(lambda x: torch.softmax(x, 1) * 2, (torch.zeros(2, 8),))
    file = tmp_path / f"model{suffix}"
    compiled.save(file)
    command = ["profile", "-o", str(tmp_path / "out"), str(file), "--repeat", "2"]
    assert CliRunner().invoke(app, command).exit_code == 0
    profile = read_json(tmp_path / "out")
    assert [len(graph.calls) for graph in profile.graphs] == [3]
    named = {(op.target, Path(op.file).name) for op in profile.ops}
    assert ("aten._softmax.default", Path(__file__).name) in named
    assert {op.module for op in profile.ops} == {""}


FAILS = """
import torch
torch.compile(torch.exp, backend="tt")(torch.ones(3))
raise SystemExit(3)
"""


def test_a_command_that_fails_keeps_the_last_profile(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder.parent / "fails.py").write_text(FAILS)
    for program in ([str(folder.parent / "fails.py")], ["-m", "platform"]):
        assert CliRunner().invoke(app, ["profile", "-o", str(folder), *program]).exit_code == 1
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(app, ["profile", "-o", str(tmp_path / "file" / "out"), "-m", "platform"])
    assert done.exit_code == 1 and done.output.startswith("error: ") and "Not a directory" in done.output

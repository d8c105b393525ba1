"""The conformance check itself: its findings on each device, and its errors."""

from __future__ import annotations

import copy

import pytest
import torch
from runtime.programs import Maker
from typer.testing import CliRunner

import tt_torch
from tt_torch.codegen import environment
from tt_torch.codegen.check import Checker, own_peaks
from tt_torch.codegen.client import Client
from tt_torch.errors import DeviceError, EnvironmentMissingError, WorkerError
from tt_torch.tools.cli import app
from tt_torch.wire import facts
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode

needs_ttnn = pytest.mark.needs_ttnn


@pytest.fixture(scope="module")
def message():
    inputs = (torch.randn(8, 64), torch.randn(64, 16))
    return decode(tt_torch.compile_model(lambda x, y: torch.relu(x) @ y, inputs).binary)


def operations(message):
    return {op.name: op.record for program in message["programs"] for op in facts.ops(program)}


@needs_ttnn
@pytest.mark.parametrize("device", environment.DEVICES)
def test_a_sound_program_conforms(checkers, message, device):
    report = checkers(device).check(encode(message))
    assert report.failures == []
    assert {v.op for v in report.verdicts} >= {"MatmulOp", "EltwiseUnaryOp.Relu", "ToLayoutOp", "DeallocateOp"}
    assert report.peaks["main"]["DRAM"] >= 4 * (8 * 64 + 64 * 16)


def test_our_own_peak_holds_operands_and_result(message):
    peaks = own_peaks(encode(message), "wormhole_b0")
    assert peaks["DRAM"] >= 4 * (8 * 64 + 64 * 16 + 8 * 16)


@needs_ttnn
def test_a_refusal_has_the_words_of_the_library(checkers, message):
    changed = copy.deepcopy(message)
    operations(changed)["MatmulOp"]["transpose_b"] = True
    (verdict,) = checkers().check(encode(changed)).failures
    assert verdict.refused
    assert verdict.op == "MatmulOp"
    assert "width" in verdict.differences[0]


@needs_ttnn
def test_a_result_that_the_binary_describes_otherwise_is_a_difference(checkers, message):
    changed = copy.deepcopy(message)
    operations(changed)["MatmulOp"]["out"]["desc"]["shape"] = [8, 17]
    (verdict,) = checkers().check(encode(changed)).failures
    assert not verdict.refused
    assert verdict.differences == ("shape is [8, 16], not [8, 17]",)


def for_mesh(rows, columns):
    maker = Maker((rows, columns))
    x = maker.input((32, 64))
    wide = maker.tensor((32, 64 * columns))
    return maker.binary(maker.op("AllGatherOp", **{"in": x}, out=wide, all_gather_dim=1, cluster_axis=1))


@needs_ttnn
@pytest.mark.parametrize("device", environment.DEVICES)
@pytest.mark.parametrize("mesh", [(1, 8), (4, 8)])
def test_large_meshes_open(ttnn_folder, tmp_path, device, mesh):
    path = tmp_path / "gather.ttnn"
    path.write_bytes(for_mesh(*mesh))
    result = CliRunner().invoke(app, ["check", str(path), "--device", device, "--mesh", "x".join(map(str, mesh))])
    assert result.exit_code == 0, result.output
    assert "1 ops, 0 that differ" in result.output


@needs_ttnn
def test_each_binary_is_checked_on_its_own_mesh(ttnn_folder, tmp_path):
    paths = [tmp_path / f"{columns}.ttnn" for columns in (2, 4)]
    for path, columns in zip(paths, (2, 4), strict=True):
        path.write_bytes(for_mesh(1, columns))
    result = CliRunner().invoke(app, ["check", "--all", *map(str, paths)])
    assert result.exit_code == 0 and result.output.count("1 ops, 0 that differ") == 2


@needs_ttnn
def test_a_collective_along_another_axis_is_a_difference(checkers):
    """The program gathers along a column of two chips instead of a row of four."""
    message = decode(for_mesh(2, 4))
    operations(message)["AllGatherOp"]["cluster_axis"] = 0
    (verdict,) = checkers("n150", (2, 4)).check(encode(message)).failures
    assert verdict.differences == ("shape is [32, 128], not [32, 256]", "padded volume is 4096, not 8192")


@needs_ttnn
def test_a_binary_for_another_mesh_is_an_error(checkers):
    with pytest.raises(DeviceError, match="for a mesh of 1x4 chips, and the mock device has a mesh of 1x2 chips"):
        checkers("n150", (1, 2)).check(for_mesh(1, 4))
    with pytest.raises(DeviceError, match="for a mesh of 1x4 chips, and the mock device has one chip"):
        checkers("n150").check(for_mesh(1, 4))


@needs_ttnn
def test_a_mesh_that_the_library_does_not_open_is_an_error(ttnn_folder):
    with pytest.raises(DeviceError, match=r"does not open a mock n150 of a mesh of 3x3 chips: .*both mesh dimensions"):
        Checker("n150", mesh_shape=(3, 3))
    with pytest.raises(DeviceError, match="at most 256 chips, and a mesh of 1000x1000 chips is asked for"):
        Checker("n150", mesh_shape=(1000, 1000))


@pytest.mark.parametrize("mesh", ["2", "0x2", "2x", "axb", "1x2x3", "100x1"])
def test_a_mesh_is_rows_and_columns(tmp_path, mesh):
    path = tmp_path / "any.ttnn"
    path.write_bytes(b"")
    result = CliRunner().invoke(app, ["check", str(path), "--mesh", mesh])
    assert result.exit_code == 2 and "it takes rows and columns of chips, such as 2x4" in result.stderr


def test_without_the_package_the_error_says_what_to_run(tmp_path):
    with pytest.raises(EnvironmentMissingError, match="tt-torch check --setup"):
        environment.require(tmp_path)


def test_the_command_needs_files_or_setup():
    result = CliRunner().invoke(app, ["check"])
    assert result.exit_code == 2 and "give binaries to check, or --setup" in result.output


def test_an_interrupted_setup_starts_again(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(environment, "_install", lambda folder: made.append(folder) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        environment.set_up(tmp_path)
    assert not environment.is_ready(tmp_path)
    monkeypatch.setattr(environment, "_install", made.append)
    environment.set_up(tmp_path)
    environment.set_up(tmp_path)  # does nothing, because the setup is complete
    assert environment.is_ready(tmp_path)
    assert made == [tmp_path, tmp_path]


def test_a_dead_worker_is_an_error():
    with Client("/bin/false", {}) as client, pytest.raises(WorkerError, match=r"died during open \(exit code 1\)"):
        client.ask("open")


def test_a_silent_worker_is_an_error(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 60\n")
    python.chmod(0o755)
    with Client(python, {}, timeout=0.1) as client, pytest.raises(WorkerError, match="hangs"):
        client.ask("open")


def test_environment_names_the_descriptor(tmp_path):
    values = environment.variables(tmp_path, "p150")
    assert values["TT_METAL_MOCK_CLUSTER_DESC_PATH"].endswith("p150_1x1.yaml")

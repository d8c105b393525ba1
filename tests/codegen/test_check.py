"""The conformance check itself: its findings on each device, and its errors."""

from __future__ import annotations

import copy

import pytest
import torch
from typer.testing import CliRunner

import tt_torch
from tt_torch.codegen import environment
from tt_torch.codegen.check import own_peaks
from tt_torch.codegen.client import Client
from tt_torch.errors import EnvironmentMissingError, WorkerError
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
    assert values["TT_METAL_MOCK_CLUSTER_DESC_PATH"].endswith("p150.yaml")

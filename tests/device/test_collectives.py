"""The backend "tt" of `torch.distributed`, in two processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from two_processes import batch, model, train

PROGRAM = Path(__file__).with_name("two_processes.py")


@pytest.mark.slow
def test_collectives_and_data_parallel_training(tmp_path: Path) -> None:
    """Training in two processes gives the parameters of training with both batches at once."""
    commands = [[sys.executable, PROGRAM, str(rank), tmp_path / "store"] for rank in range(2)]
    running = [subprocess.Popen(c, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for c in commands]
    done = [process.communicate(timeout=200) for process in running]
    assert [process.returncode for process in running] == [0, 0], done
    reports = [json.loads(out.splitlines()[-1]) for out, _ in done]
    assert reports[0] == reports[1]
    assert reports[0]["names"] == ["process 0", "process 1"]
    net = model(0)
    expected = train(net, list(net.parameters()), torch.cat([batch(0), batch(1)]))
    for found, wanted in zip(reports[0]["trained"], expected, strict=True):
        assert found == pytest.approx(wanted, abs=1e-6)

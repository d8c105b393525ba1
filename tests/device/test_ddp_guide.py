"""The program of docs/ddp.md, in two processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils.data import DistributedSampler

PAGE = (Path(__file__).parents[2] / "docs" / "ddp.md").read_text()


@pytest.mark.slow
def test_two_processes_train_as_one(tmp_path: Path) -> None:
    """The program prints what the page shows. Its weights equal the weights of one process that trains with the batches
    of both processes. The saved MLIR files show that the model was compiled."""
    ((name, program),) = re.findall(r"^<!-- file (\S+) -->\n```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / name).write_text(program)
    options = {"TT_TORCH_FALLBACK": "error", "TT_TORCH_SAVE_MLIR": "TTNN", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", name]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | options, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (shown,) = re.findall(r"^prints\n\n```\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert done.stdout == shown
    assert len(list((tmp_path / "model_mlir").iterdir())) == 2  # forward and backward
    found = torch.load(tmp_path / "net.pt", map_location="cpu")
    torch.testing.assert_close(found, trained_alone(), rtol=1e-4, atol=1e-5)


def trained_alone() -> dict[str, torch.Tensor]:
    """The weights after the page's training in this process, in eager PyTorch."""
    torch.manual_seed(0)
    points = torch.randn(256, 8)
    labels = (points.sum(1) > 0).long()
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    samplers = [DistributedSampler(points, num_replicas=2, rank=rank) for rank in range(2)]
    for epoch in range(3):
        for sampler in samplers:
            sampler.set_epoch(epoch)
        halves = [torch.tensor(list(sampler)).split(32) for sampler in samplers]
        for batch in map(torch.cat, zip(*halves, strict=True)):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(points[batch]), labels[batch]).backward()
            optimizer.step()
    return net.state_dict()

"""Memory of the host for a model on eight chips, beyond what was there before it, as a multiple of its weights.

Two sides are measured. A model that has values is split with `parallelize_module`: the parts take the place of its
weights, which count as memory that was there before. A model on `meta` gets its weights from a file. The pages of the
file are not counted, because the system can take them back. So the peak is the largest of many samples.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from benchmarks.common import in_process, table
from benchmarks.memory import _status

LAYERS, WIDTH = 32, 2048
SIDES = ("split in memory", "from a file")
BAR = 1.3


def _model(layers: int = LAYERS, width: int = WIDTH) -> nn.Module:
    made = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(layers)))
    return made.eval().requires_grad_(False)


def _compiled(model: nn.Module, width: int, **options: Any) -> None:
    import tt_torch

    styles = (ColwiseParallel(), RowwiseParallel())
    plan = {str(i): styles[i % 2] for i in range(len(list(model.children())))}
    parallelize_module(model, init_device_mesh("tt", (8,)), plan)
    x = torch.randn(2, width)
    compiled: Any = tt_torch.compile_model(model, (x,), **options)
    for _ in range(2):
        compiled(x)


@contextmanager
def _samples() -> Iterator[list[int]]:
    """Bytes of memory that the process has beside files, once per 2 ms and at the end."""
    found, ended = list[int](), Event()

    def watch() -> None:
        while not ended.wait(0.002):
            found.append(_status("RssAnon"))

    watching = Thread(target=watch)
    watching.start()
    try:
        yield found
    finally:
        ended.set()
        watching.join()
        found.append(_status("RssAnon"))


def _measure(side: str) -> dict[str, float]:
    _compiled(_model(2, 64), 64)  # imports
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        if side == "from a file":
            save_file(_model().state_dict(), path)
        with torch.device("meta" if side == "from a file" else "cpu"):
            model = _model()
        before, size = _status("RssAnon"), sum(p.nbytes for p in model.parameters())
        options = {"weights": str(path)} if side == "from a file" else {}
        with _samples() as found:
            _compiled(model, WIDTH, **options)
        return {"size": size, "peak": (max(found) - before) / size}


def run(threads: int) -> None:
    rows = []
    for side in SIDES:
        found = in_process("benchmarks.mesh_memory", side, str(threads))
        rows.append((side, f"{found['size'] / 2**20:.0f}", f"{found['peak']:.2f}", str(BAR)))
    table("Peak of the host's memory on eight chips, in sizes of the weights", ["weights", "MiB", "peak", "bar"], rows)


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[2]))
    print(json.dumps(_measure(sys.argv[1])))

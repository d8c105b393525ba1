"""Programs for eight chips. One process has the chips, or several processes share them.

Each program returns plain tensors.

`python host_programs.py FOLDER NAME...` runs them in this process and writes the results to FOLDER.
"""

from __future__ import annotations

import os
import sys
from itertools import product
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import tt_torch
from tt_torch.runtime import Binary, Device
from tt_torch.runtime.mesh_executable import MeshExecutable
from tt_torch.torch_private.chips import hosts

PLAN = {"0": ColwiseParallel(), "2": RowwiseParallel()}


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 16))


def plain(x: torch.Tensor) -> torch.Tensor:
    return (x.full_tensor() if isinstance(x, DTensor) else x).detach().cpu()


def trained(model: nn.Module, run, x: torch.Tensor) -> list[torch.Tensor]:
    """The results of three steps, and the weights after them."""
    optimizer, results = torch.optim.Adam(model.parameters(), lr=0.1), []
    for _ in range(3):
        optimizer.zero_grad()
        results.append(run(x))
        (results[-1].full_tensor() if isinstance(results[-1], DTensor) else results[-1]).sin().sum().backward()
        optimizer.step()
    return [plain(t) for t in (*results, *model.parameters())]


def split_layers(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    mesh = init_device_mesh("tt", shape, mesh_dim_names=("dp", "tp")[-len(shape) :])
    model = parallelize_module(make_model().to(dtype), mesh["tp"], PLAN)
    return trained(model, torch.compile(model, backend="tt"), torch.randn(4, 16).to(dtype))


def stages() -> list[torch.Tensor]:
    """Two stages of four chips each, so that both processes have two chips of each stage."""
    mesh = init_device_mesh("tt", (4,))
    model = parallelize_module(make_model(), mesh, PLAN)
    options = {"device_map": {"0": 0, "1": 0, "2": 1}}
    return trained(model, torch.compile(model, backend="tt", options=options), torch.randn(4, 16))


def split_batch(shape: tuple[int, ...], compiled: bool = True) -> list[torch.Tensor]:
    mesh = init_device_mesh("tt", shape)
    model = distribute_module(nn.Sequential(make_model(), nn.Dropout(0.2), nn.BatchNorm1d(16)), mesh)
    x = distribute_tensor(torch.randn(16, 16), mesh, [Shard(0)] * mesh.ndim)
    return trained(model, torch.compile(model, backend="tt") if compiled else model, x)


def plain_model() -> list[torch.Tensor]:
    init_device_mesh("tt", (8,))
    model, options = make_model(), {"mesh_shape": (1, 8), "automatic_parallelization": True}
    x = torch.randn(16, 16, requires_grad=True)
    results = trained(model, torch.compile(model, backend="tt", options=options, dynamic=False), x)
    return [*results, x.grad]


def ahead_of_time() -> list[torch.Tensor]:
    mesh = init_device_mesh("tt", (8,))
    model, x = parallelize_module(make_model().requires_grad_(False), mesh, PLAN), torch.randn(4, 16)
    compiled = tt_torch.compile_model(model, (x,))
    return [plain(compiled(x)), plain(compiled(x + 1)), torch.tensor([hash(compiled.binary) != 0])]


def whole_results() -> list[torch.Tensor]:
    """A program that takes whole tensors and returns a whole tensor. Each chip has a part of the result."""
    x, mesh = torch.arange(128.0).reshape(16, 8), init_device_mesh("tt", (8,))
    model = tt_torch.compile_model(lambda x: x.neg(), (distribute_tensor(x, mesh, [Shard(0)]),))
    with Device(mesh_shape=(1, 8), hosts=hosts()) as device:
        executable = MeshExecutable(Binary(model.binary), 0, device, [(None, 0)], [(None, 0)])
        (result,) = executable([x])
    assert torch.equal(result, -x)
    return [result]


def placements() -> list[torch.Tensor]:
    """All changes of placements in eager mode, and in a program."""
    results = []
    for shape in ((8,), (2, 4), (4, 2)):
        mesh = init_device_mesh("tt", shape)
        torch.manual_seed(1)
        whole = torch.randn(64, 8, 8)
        for given, wanted in product((Replicate(), Shard(0), Shard(2), Partial()), (Replicate(), Shard(0), Shard(1))):
            x = distribute_tensor(whole, mesh, [Replicate()] * (mesh.ndim - 1) + [Shard(0)])
            x = DTensor.from_local(x.to_local() * 3, mesh, [Replicate()] * (mesh.ndim - 1) + [given])

            def change(x: DTensor, wanted=wanted, mesh=mesh) -> DTensor:
                return (x * 2).redistribute(mesh, [wanted] * mesh.ndim)

            torch._dynamo.reset()
            is_compiled = mesh.ndim == 1 and given in (Shard(0), Partial()) and wanted != given
            run = torch.compile(change, backend="tt") if is_compiled else change
            local = run(x).to_local()
            results.append(plain(DTensor.from_local(local, mesh, [wanted] * mesh.ndim)) if wanted != given else whole)
    return results


PROGRAMS = {
    "layers": lambda: split_layers((8,)),
    "layers inside of a process": lambda: split_layers((2, 4)),
    "layers in bfloat16": lambda: split_layers((8,), torch.bfloat16),
    "layers in two stages": stages,
    "batch along two axes": lambda: split_batch((2, 4)),
    "eager batch": lambda: split_batch((2, 4), compiled=False),
    "plain model": plain_model,
    "ahead of time": ahead_of_time,
    "whole results": whole_results,
    "placements": placements,
}


def main(folder: str, *names: str) -> None:
    results = {}
    for name in names or PROGRAMS:
        torch._dynamo.reset()
        try:
            results[name] = PROGRAMS[name]()
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()
    torch.save(results, Path(folder) / f"{os.environ.get('RANK', 'alone')}.pt")


if __name__ == "__main__":
    main(*sys.argv[1:])

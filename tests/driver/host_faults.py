"""This program makes faults between processes that share a mesh. It prints each error, and the results after it."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import tt_torch
from tt_torch import BackendOptions
from tt_torch.runtime import Device

SECOND = os.environ["RANK"] == "1"
PLAN = {"0": ColwiseParallel(), "2": RowwiseParallel()}


@torch.library.custom_op("host_faults::checked", mutates_args=())
def checked(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


checked.register_fake(torch.empty_like)


class Checked(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.host_faults.checked(x) * 2


def say(name: str, call: Callable[[], object]) -> None:
    start = time.monotonic()
    try:
        result = call()
    except BaseException as error:
        inner = getattr(error, "inner_exception", error)
        result = f"{type(inner).__name__}: {inner}"
    took = "in time" if time.monotonic() - start < 30 else "too late"
    print(f"{name}, {took}: {result}", flush=True)


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), Checked(), nn.Linear(32, 16)).requires_grad_(False)


def on_another_mesh() -> tuple[nn.Module, nn.Module]:
    dist.destroy_process_group()
    model = parallelize_module(make_model(), init_device_mesh("tt", (8,)), PLAN)
    torch._dynamo.reset()
    return model, torch.compile(model, backend="tt")


def main() -> None:
    say("another mesh", lambda: init_device_mesh("tt", (2, 4) if SECOND else (4, 2)))
    say("a mesh of processes", lambda: init_device_mesh("tt", (2,) if SECOND else (8,)))
    say("seven chips", lambda: init_device_mesh("tt", (7,)))
    mesh = init_device_mesh("tt", (8,))
    breaks = []

    def kernel(x: torch.Tensor) -> torch.Tensor:
        if breaks:
            raise ValueError("a kernel fails")
        return x

    tt_torch.kernel(torch.ops.host_faults.checked)(kernel)
    model, x = make_model(), torch.ones(4, 16)
    expected = model(x)
    parallelize_module(model, mesh, PLAN)
    run = torch.compile(model, backend="tt")

    def works() -> bool:
        return torch.allclose(run(x).cpu(), expected, atol=1e-5)

    def fails() -> object:
        breaks.extend([1] if SECOND else [])
        return run(x)

    say("a call", works)
    say("an exception in the middle", fails)
    breaks.clear()
    say("a call after it", works)
    say("other inputs", lambda: run(x + SECOND))
    say("other data", lambda: distribute_tensor(x + SECOND, mesh, [Shard(1)]))
    say("other values of a plain result", lambda: DTensor.from_local(x + SECOND, mesh, [Replicate()]).full_tensor())
    split = distribute_tensor(x, mesh, [Shard(1)])
    torch.manual_seed(int(SECOND))
    say("other random numbers", lambda: torch.rand_like(split))
    say("other random numbers in a program", lambda: torch.compile(torch.rand_like, backend="tt")(split))
    other = torch.compile(lambda x: model(x).relu() if SECOND else model(x).tanh(), backend="tt")
    say("another program", lambda: other(x))
    say(
        "only one process calls",
        lambda: run(x[:2]) if SECOND else distribute_tensor(x, mesh, [Shard(1)]).sum().full_tensor(),
    )
    say(
        "calls that overlap", lambda: torch.compile(model, backend="tt", options={"async_mode": True}, dynamic=False)(x)
    )
    given = BackendOptions(devices=[Device(mesh_shape=(1, 8))])
    torch._dynamo.reset()
    say("a device of the user", lambda: torch.compile(model, backend="tt", options=given)(x))
    torch._dynamo.reset()
    say("a call after all", works)
    if SECOND:
        time.sleep(float(os.environ["TT_TORCH_HOST_TIMEOUT"]) + 1)
    say("a process that is late", works)
    say("a call after that", works)
    model, run = on_another_mesh()
    say("another mesh after that", works)
    signalled = Path(tempfile.gettempdir(), f"host_faults_{os.environ['MASTER_PORT']}")
    if SECOND:
        while not signalled.exists():
            time.sleep(0.1)
        signalled.unlink()
        time.sleep(2)  # the other process notices the signal within a second
    else:
        threading.Timer(1, lambda: (os.kill(os.getpid(), signal.SIGINT), signalled.touch())).start()
    say("Ctrl-C while another process is late", works)
    say("a call after Ctrl-C", works)
    model, run = on_another_mesh()
    if SECOND:
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    say("a process is killed", works)


if __name__ == "__main__":
    main()

"""One of two processes that work together by the backend "tt" of `torch.distributed`: `two_processes.py rank file`.

The program runs each collective with tensors on "tt" and with tensors on the CPU, and compares the results. Then it
trains by DistributedDataParallel, and prints the parameters.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

Made = Callable[..., Tensor]  # makes a tensor of this shape on the device that is tried


def all_reduce(made: Made, rank: int) -> list[Tensor]:
    x, y = made(3), made(3, 2).t()
    dist.all_reduce(x, dist.ReduceOp.MAX)
    dist.all_reduce(y)
    return [x, y]


def broadcast(made: Made, rank: int) -> list[Tensor]:
    x = made(2, 2)
    dist.broadcast(x, 1)
    return [x]


def gather(made: Made, rank: int) -> list[Tensor]:
    x, parts, whole, at_one = made(3), [made(3), made(3)], made(6), [made(3), made(3)]
    dist.all_gather(parts, x)
    dist.all_gather_into_tensor(whole, x)
    dist.gather(x, at_one if rank == 1 else None, 1)
    return [*parts, whole, *at_one]


def scatter(made: Made, rank: int) -> list[Tensor]:
    x, whole, half, reduced = made(3), [made(3), made(3)], made(2), made(3)
    dist.scatter(x, whole if rank == 0 else None, 0)
    dist.reduce_scatter_tensor(half, made(4))
    dist.reduce_scatter(reduced, whole)
    return [x, half, reduced]


def all_to_all(made: Made, rank: int) -> list[Tensor]:
    x = made(4)
    dist.all_to_all_single(x, made(4))
    return [x]


def ring(made: Made, rank: int) -> list[Tensor]:
    """Each process sends to the other before it receives."""
    x, y = made(3), made(3)
    sent = dist.isend(x, 1 - rank)
    received = dist.irecv(y, 1 - rank)
    assert received is not None and sent is not None
    received.wait()
    sent.wait()
    assert received.is_completed()
    return [x, y]


def later(made: Made, rank: int) -> list[Tensor]:
    """The result of a future has the tensors on their own device."""
    x = made(3)
    work = dist.all_reduce(x, async_op=True)
    assert work is not None
    (result,) = work.get_future().wait()
    return [x, result]


def compare(collective: Callable[[Made, int], list[Tensor]], rank: int) -> None:
    found = {}
    for device in ("cpu", "tt"):
        generator = torch.Generator().manual_seed(rank)
        made = lambda *shape, g=generator, d=device: torch.randn(*shape, generator=g).to(d)  # noqa: E731
        found[device] = collective(made, rank)
    assert all(x.device.type == "tt" for x in found["tt"]), collective
    torch.testing.assert_close([x.cpu() for x in found["tt"]], found["cpu"], rtol=0, atol=0, msg=collective.__name__)


def batch(rank: int) -> Tensor:
    return torch.randn(5, 4, generator=torch.Generator().manual_seed(rank))


def model(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))


def train(step: Callable[[Tensor], Tensor], parameters: list[Tensor], x: Tensor) -> list[list[float]]:
    """The parameters after two steps, flat."""
    optimizer = torch.optim.SGD(parameters, 0.5)
    for _ in range(2):
        optimizer.zero_grad()
        step(x).pow(2).mean().backward()
        optimizer.step()
    return [p.detach().cpu().flatten().tolist() for p in parameters]


def main(rank: int, file: str) -> None:
    # No backend is named, so PyTorch takes the accelerator's backend.
    dist.init_process_group(init_method=f"file://{file}", rank=rank, world_size=2, timeout=timedelta(seconds=100))
    for collective in (all_reduce, broadcast, gather, scatter, all_to_all, ring, later):
        compare(collective, rank)
    names = [None, None]
    dist.all_gather_object(names, f"process {rank}")
    dist.barrier()
    net = model(rank).to("tt")  # each process has other weights; DDP takes process 0's weights
    trained = train(DistributedDataParallel(net), list(net.parameters()), batch(rank).to("tt"))
    print(json.dumps({"names": names, "trained": trained}))
    dist.destroy_process_group()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(int(sys.argv[1]), sys.argv[2])

"""Random modules on meshes, compared with the same module on the CPU without a mesh.

`python -m tests.mesh_modules --seed 7 --count 100` prints each module that differs, or ends in an error that is not one
of ours for what chips do not do. Modules have graph breaks, writes to inputs and buffers, and steps of training, and
are called with batches of several sizes. `split="batch"` splits the batch of a plain module; otherwise the module has
DTensors.
"""

from __future__ import annotations

import argparse
import logging
import random
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import tt_torch.fuzz.meshes

WIDTH = 16
MESHES = ((1, 2), (2, 2), (1, 4), (2, 4))
SIZES = ((8, 4), (16, 4), (8, 8), (16, 8), (24, 12), (8, 16))
SPLITS = ("batch", "layers", "dtensors")
# How inputs are split along the rows and the columns of a mesh.
PLACES = ((Replicate(), Replicate()), (Shard(0), Shard(0)), (Shard(0), Replicate()), (Shard(0), Shard(1)))

# {r}: a new value; {a}, {b}: values of shape (batch, length, WIDTH). `y` is (batch, WIDTH), `ids` is (batch, length).
VALUES = """
{r} = {a}.sin() | {r} = torch.tanh({a}) * {b} | {r} = {a} + {b} | {r} = F.gelu({a}) | {r} = {a} * y.unsqueeze(1)
{r} = {a} - {a}.mean(1, keepdim=True) | {r} = {a} - {a}.mean(0, keepdim=True) | {r} = self.norm({a})
{r} = self.down(F.relu(self.up({a}))) | {r} = {a} + self.table(ids) | {r} = F.softmax({a}, -1) | {r} = F.softmax({a}, 0)
{r} = {a}.flip(1) | {r} = torch.cat([{a}, {b}], 1)[:, : {a}.shape[1]] | {r} = {a}.cumsum(1) / 4 | {r} = {a}.roll(1, 0)
{r} = {a}.flatten(0, 1).unflatten(0, {a}.shape[:2]) | {r} = self.conv({a}.transpose(1, 2)).transpose(1, 2)
{r} = {a} * {a}.amax((1, 2), keepdim=True) | {r} = {a} * (1 / {a}.shape[0]) | {r} = {a} * {a}.shape[1]
{r} = {a}.clone(); {r}[:, 0] = 1 | {r} = {a}.clone(); {r}[0] = {b}[0] | {r} = {a}.clone(); {r}[0].add_(1)
{r} = {a}.clone(); {r}[..., :8] += {b}[..., 8:] | {r} = ({a} @ {b}.transpose(1, 2)).softmax(-1) @ {a}
{r} = F.scaled_dot_product_attention({a}[:, None], {b}[:, None], {a}[:, None], is_causal=True)[:, 0]
{r} = torch.where({a} > 0, {b}, y[:, None]) | {r} = {a} + y.mean(0) | {r} = {a} + {a}.sum() / 100
{r} = {a}[:, torch.arange({a}.shape[1] - 1, -1, -1, device={a}.device)] | {r} = {a}.sort(1).values
{r} = {a}.masked_fill(ids[..., None] > 8, 0.5) | {r} = {a}.detach() + {b} | {r} = {a}.mean((0, 1)) + {b}
{r} = torch.stack([{a}, {b}], 2).mean(2) | {r} = torch.cat({a}.chunk(2, -1)[::-1], -1) | {r} = {a}.expand_as({b}) / 2
"""
BREAKS = """
torch._dynamo.graph_break() | {r} = {a}.clone(); torch._dynamo.graph_break(); {r}.mul_(2)
{r} = {a} * 1; torch._dynamo.graph_break(); {r}[0].add_({b}[1]) | {r} = {a} * int(ids[0, 0])
{r} = {a} + 1; v = {r}[1]; torch._dynamo.graph_break(); v.mul_(3) | k = ids[0, 0]; {r} = {a} + {b}[:, k % 4][:, None]
v = {a}.transpose(0, 1); torch._dynamo.graph_break(); {r} = v.transpose(0, 1) + 1
"""
BUFFERS = """
self.count.add_({a}.detach().mean((0, 1))) | self.count.mul_(0.5) | self.cache[1:3] = self.count
{r} = {a} + self.count | {r} = {a} + self.cache.mean(0)
"""
INPUTS = """
y.add_(1) | y[:, 0] = 2 | y.mul_(y.mean(0, keepdim=True)) | v = y[:, :4]; v.add_(1) | y[1].mul_(3) | y.t()[0].add_(1)
ids.add_(1).remainder_(16) | v = y.view(-1); v.mul_(0.5)
"""
FAMILIES = [[text.strip() for text in table.replace("\n", "|").split("|") if text.strip()]
            for table in (VALUES, BREAKS, BUFFERS, INPUTS)]  # fmt: skip


class Module(nn.Module):
    """A module whose `forward` has the lines of `source`."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.norm, self.conv = nn.LayerNorm(WIDTH), nn.Conv1d(WIDTH, WIDTH, 3, padding=1)
        self.table = nn.Embedding(16, WIDTH)
        self.register_buffer("count", torch.zeros(WIDTH))
        self.register_buffer("cache", torch.zeros(16, WIDTH))
        names: dict[str, Callable[..., list[torch.Tensor]]] = {"torch": torch, "F": F}  # type: ignore[dict-item]
        exec(compile(source, "module.py", "exec"), names)
        self.written = names["forward"]

    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        return self.written(self, *inputs)


@dataclass(frozen=True)
class Program:
    seed: int
    split: str
    source: str
    mesh: tuple[int, int]
    batches: tuple[tuple[int, int], ...]  # the size of the batch, and the length, of each call
    trains: bool
    dynamic: bool | None
    places: tuple[Replicate | Shard, ...]

    def module(self) -> Module:
        torch.manual_seed(self.seed)
        module = Module(self.source)
        return module if self.trains else module.eval().requires_grad_(False)

    def inputs(self, call: int) -> list[torch.Tensor]:
        draw, (batch, length) = torch.Generator().manual_seed(10 * self.seed + call), self.batches[call]
        x, y = torch.randn(batch, length, WIDTH, generator=draw), torch.randn(batch, WIDTH, generator=draw)
        return [x, y, torch.randint(0, 16, (batch, length), generator=draw)]


def generate(seed: int, split: str) -> Program:
    draw = random.Random(f"{split} {seed}")
    names, lines = ["x"], list[str]()
    for i in range(draw.randrange(3, 9)):
        text = draw.choice(draw.choices(FAMILIES, (68, 12, 10, 10))[0])
        lines += text.format(r=f"z{i}", a=draw.choice(names[-2:]), b=draw.choice(names)).split("; ")
        if "{r}" in text:
            names.append(f"z{i}")
    lines.append(f"last = {names[-1]} + self.down(F.relu(self.up({draw.choice(names)})))")
    lines.append(f"return [last, {draw.choice(names)}, {draw.choice(['y', 'last[0]', 'last.sum(0)', 'last'])}]")
    source = "\n    ".join(["def forward(self, x, y, ids):", *lines])
    batches = (SIZES[0], *draw.choices(SIZES, k=draw.randrange(3)))
    places, trains = draw.choice(PLACES), draw.random() < 0.5
    return Program(
        seed, split, source, draw.choice(MESHES), batches, trains, draw.choice([None, None, True, False]), places
    )


def results(program: Program, module: nn.Module, run: Callable[..., list[torch.Tensor]], give: Callable) -> list:
    """Runs the calls. Returns all results, inputs, gradients, parameters and buffers as whole tensors."""
    seen = list[torch.Tensor]()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    for call in range(len(program.batches)):
        inputs = give(program.inputs(call))
        found = run(*inputs)
        if program.trains:
            optimizer.zero_grad()
            whole(found[0].square().mean(), detached=False).backward()
            optimizer.step()
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in module.parameters()]
        seen += [whole(x) for x in (*found, *inputs, *gradients, *module.parameters(), *module.buffers())]
    return seen


def whole(x: torch.Tensor, detached: bool = True) -> torch.Tensor:
    x = x.full_tensor() if isinstance(x, DTensor) else x
    return x.detach().cpu().clone() if detached else x


def on_mesh(program: Program, mesh: DeviceMesh) -> list[torch.Tensor]:
    module, options, give = program.module(), {}, lambda inputs: inputs
    if program.split == "batch":
        options = {"mesh_shape": program.mesh, "automatic_parallelization": True}
    elif program.split == "layers":
        parallelize_module(module, mesh["columns"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    else:
        distribute_module(module, mesh)
        give = lambda inputs: [distribute_tensor(x, mesh, program.places[: x.dim()]) for x in inputs]  # noqa: E731
    return results(program, module, torch.compile(module, backend="tt", dynamic=program.dynamic, options=options), give)


def _is_traced(program: Program) -> bool:
    """Whether PyTorch's own tracing takes the module. It needs the gradients of all results, also of unused ones."""
    torch._dynamo.reset()
    module = program.module()
    try:
        results(
            program, module, torch.compile(module, backend="aot_eager", dynamic=program.dynamic), lambda given: given
        )
    except Exception:
        return False
    return True


def verdict(program: Program) -> str:
    """Says "match", "invalid" if the CPU refuses the module, "refused" if we or PyTorch do, or how it differs."""
    torch._dynamo.reset()
    module = program.module()
    try:
        expected = results(program, module, module, lambda inputs: inputs)
    except (RuntimeError, IndexError):
        return "invalid"
    try:
        mesh = init_device_mesh("tt", program.mesh, mesh_dim_names=("rows", "columns"))
        found = on_mesh(program, mesh)
        torch.testing.assert_close(found, expected, atol=5e-4, rtol=2e-3)
    except AssertionError as error:
        return f"differs: {error}"
    except Exception as error:
        known = tt_torch.fuzz.meshes.is_refused(error) or not _is_traced(program)
        return "refused" if known else f"{type(error).__name__}: {error}"
    finally:
        dist.destroy_process_group()
    return "match"


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--split", choices=SPLITS, action="append")
    options = parser.parse_args(given)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    verdicts = Counter[str]()
    for seed in range(options.seed, options.seed + options.count):
        for split in options.split or SPLITS:
            found = verdict(program := generate(seed, split))
            known = found in ("match", "refused", "invalid")
            verdicts[found if known else "finding"] += 1
            if not known:
                print(program, program.source, found[:600], sep="\n", flush=True)
    print(dict(verdicts))


if __name__ == "__main__":
    main()

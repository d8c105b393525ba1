"""Random programs of DTensors on a mesh, and the same programs of plain tensors.

A program is a list of steps, each a function of the values so far. A step that moves a DTensor to other placements does
nothing to a plain tensor.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import torch
from torch.distributed.tensor import DTensor, Placement, Replicate, Shard, distribute_tensor

Value = torch.Tensor
Step = Callable[[Sequence[Value]], Value]
SIZES = (8, 16, 24)
UNARY = (torch.relu, torch.sin, torch.tanh, torch.neg, torch.abs, lambda x: x * 2, lambda x: 1 - x)
BINARY = (torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum)


def placements(rng: random.Random, dims: int, count: int) -> list[Placement]:
    return [rng.choice([Replicate(), *map(Shard, range(dims))]) for _ in range(count)]


def moved(x: Value, to: Sequence[Placement]) -> Value:
    return x.redistribute(x.device_mesh, to) if isinstance(x, DTensor) else x


class Program:
    """A random program of `steps` steps for inputs on a mesh with `mesh_dims` dimensions."""

    def __init__(self, seed: int, steps: int, mesh_dims: int) -> None:
        self.rng, self.mesh_dims = random.Random(seed), mesh_dims
        shapes = [[self.rng.choice(SIZES) for _ in range(2)] for _ in range(2)]
        generator = torch.Generator().manual_seed(seed)
        self.inputs = [torch.randn(shape, generator=generator) for shape in shapes]
        self.placements = [placements(self.rng, 2, mesh_dims) for _ in shapes]
        self.steps: list[Step] = []
        values = list(self.inputs)
        for _ in range(steps):
            step = self._step(values)
            values.append(step(values))
            self.steps.append(step)

    def __call__(self, *values: Value) -> list[Value]:
        found = list(values)
        for step in self.steps:
            found.append(step(found))
        return found[len(values) :]

    def distributed(self, mesh: torch.distributed.DeviceMesh) -> list[DTensor]:
        pairs = zip(self.inputs, self.placements, strict=True)
        return [distribute_tensor(x, mesh, to) for x, to in pairs]

    def _step(self, values: Sequence[Value]) -> Step:
        rng = self.rng
        i = rng.randrange(len(values))
        x = values[i]
        others = [j for j, y in enumerate(values) if y.shape == x.shape]
        products = [j for j, y in enumerate(values) if x.dim() == 2 == y.dim() and x.shape[1] == y.shape[0]]
        dim, j = rng.randrange(x.dim()), rng.choice(others)
        steps: list[Step] = [self._move(i, x.dim()), self._move(i, x.dim())]
        unary, binary = rng.choice(UNARY), rng.choice(BINARY)
        steps += [
            lambda v: unary(v[i]),
            lambda v: binary(v[i], v[j]),
            lambda v: binary(v[i], v[i].sum(dim, keepdim=True)),
        ]
        steps += [lambda v: v[i].softmax(dim), lambda v: v[i].mean(dim, keepdim=True).expand(x.shape) + v[i]]
        steps += [lambda v: v[i].transpose(0, -1), lambda v: v[i].amax(dim, keepdim=True) * v[i]]
        steps += [lambda v: torch.cat([v[i], v[j]], dim), lambda v: torch.where(v[i] > 0, v[i], v[j])]
        steps += [lambda v: (v[i] > 0).sum(dim, keepdim=True).to(torch.float32) + v[i]]
        if products:
            k = rng.choice(products)
            steps += [lambda v: v[i] @ v[k] / x.shape[1]] * 3
        return rng.choice(steps)

    def _move(self, i: int, dims: int) -> Step:
        to = placements(self.rng, dims, self.mesh_dims)
        return lambda v: moved(v[i], to)

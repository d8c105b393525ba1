"""Random JAX programs whose values are split over a mesh at random places."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Split = Callable[[Any], Any]  # says of a value how it is split
AUTO = jax.sharding.AxisType.Auto


def splitter(draw: random.Random, sizes: tuple[int, int]) -> Split:
    """A function that gives values a random sharding with equal parts."""
    mesh = jax.sharding.AbstractMesh(sizes, ("a", "b"), axis_types=(AUTO, AUTO))

    def split(x: Any) -> Any:
        spec: list[Any] = [None] * x.ndim
        for axis, size in zip(("a", "b"), sizes, strict=True):
            dims = [d for d in range(x.ndim) if spec[d] is None and x.shape[d] % size == 0]
            if dims and draw.random() < 0.8:
                spec[draw.choice(dims)] = axis
        if x.ndim and draw.random() < 0.1 and x.shape[0] % (sizes[0] * sizes[1]) == 0:
            spec = [("a", "b"), *[None] * (x.ndim - 1)]
        return lax.with_sharding_constraint(x, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec)))

    return split


def merged(x: Any, draw: random.Random) -> Any:
    d = draw.randrange(x.ndim - 1)
    return x.reshape(*x.shape[:d], x.shape[d] * x.shape[d + 1], *x.shape[d + 2 :])


def divided(x: Any, draw: random.Random) -> Any:
    d = draw.randrange(x.ndim)
    part = draw.choice([n for n in (1, 2, 4) if x.shape[d] % n == 0])
    return x.reshape(*x.shape[:d], part, x.shape[d] // part, *x.shape[d + 1 :])


def reduced(x: Any, draw: random.Random) -> Any:
    dims = tuple(draw.sample(range(x.ndim), draw.randrange(1, x.ndim)))
    return draw.choice([jnp.sum, jnp.max, jnp.min, jnp.mean, lambda x, d: (x > 0).any(d) * 1.0])(x, dims)


def begun(x: Any, draw: random.Random) -> Any:
    """A sum that begins at another number than zero."""
    return lax.reduce(x, np.float32(3), lax.add, (draw.randrange(x.ndim),))


def product(x: Any, draw: random.Random) -> Any:
    y = jnp.moveaxis(x, draw.randrange(x.ndim), -1)
    return jnp.einsum("...i,...i->...", x, x) if draw.random() < 0.3 else y @ (jnp.ones((y.shape[-1], 8)) / 8)


def outer(x: Any, draw: random.Random) -> Any:
    """A product of a value with itself, whose contracted dimension may be split in two ways."""
    flat = x.reshape(x.shape[0], -1)
    return flat @ flat.T / flat.shape[1]


def cut(x: Any, draw: random.Random) -> Any:
    d = draw.randrange(x.ndim)
    return lax.slice_in_dim(x, draw.randrange(x.shape[d] // 2 + 1), x.shape[d], axis=d)


def looped(x: Any, draw: random.Random) -> Any:
    return lax.fori_loop(0, 3, lambda i, y: y * 0.5 + y.mean(0), x)


def dim_of(function: Callable[..., Any]) -> Callable[[Any, random.Random], Any]:
    return lambda x, draw: function(x, draw.randrange(x.ndim))


OPS: list[Callable[[Any, random.Random], Any]] = [
    *(lambda x, draw: jnp.sin(x), lambda x, draw: x * 2 + jnp.arange(x.shape[-1])),
    lambda x, draw: jnp.where(x > 0, x, lax.broadcasted_iota(x.dtype, x.shape, draw.randrange(x.ndim))),
    *(merged, divided, reduced, begun, product, outer, cut, looped),
    lambda x, draw: jnp.transpose(x, draw.sample(range(x.ndim), x.ndim)),
    *map(dim_of, (jax.nn.softmax, jnp.flip, jnp.sort, jnp.cumsum, jnp.argmax, lambda x, d: jnp.roll(x, 1, d))),
    dim_of(lambda x, d: jnp.concatenate([x, jnp.cos(x)], d)),
    dim_of(lambda x, d: jnp.pad(x, [(1, 1) if i == d else (0, 0) for i in range(x.ndim)])),
    dim_of(lambda x, d: jnp.take(x, jnp.array([0, x.shape[d] - 1, 0]), d)),
    lambda x, draw: jax.grad(lambda y: (jax.nn.relu(y) ** 2).sum())(x),
    lambda x, draw: x + x[..., :1],
]


def program(seed: int, split: Split) -> Callable[[Any], Any]:
    """A function of an array with several dimensions. Its results are the values of all steps that are left."""
    draw = random.Random(seed)
    choices = [(draw.choice(OPS), draw.random(), draw.random()) for _ in range(draw.randrange(2, 6))]

    def function(x: Any) -> Any:
        own, values = random.Random(seed), [split(x)]
        for op, splits, again in choices:
            x = values[int(again * len(values))] if again < 0.3 else values[-1]
            if x.ndim < 2 or x.size > 4096 or not jnp.issubdtype(x.dtype, jnp.floating):
                x = values[0]
            x = op(x, own)
            values.append(split(x) if splits < 0.7 else x)
        return values[1:]

    return function

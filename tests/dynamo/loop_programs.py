"""Random programs with `while_loop`, `cond`, `scan` and `map` in each other."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

Tensors = tuple[torch.Tensor, ...]
Step = Callable[[Tensors], Tensors]  # of (x, k, b): floats (3, 4), int64 (3,) and booleans (3, 4), to the same forms
WEIGHT = torch.linspace(-1, 1, 16).reshape(4, 4)


def examples(seed: int) -> list[Tensors]:
    """Arguments of a program: two of the usual kind, and one with zeros."""
    generator = torch.Generator().manual_seed(seed)
    drawn = [
        (torch.randn(3, 4, generator=generator), torch.randint(-9, 9, (3,), generator=generator)) for _ in range(2)
    ]
    return [(x, k, x > 0) for x, k in [*drawn, (torch.zeros(3, 4), torch.tensor([0, 1, -1]))]]


def drawn(seed: int) -> Callable[..., Tensors]:
    step = _block(random.Random(seed), depth=2, loop=True)
    return lambda x, k, b: step((x, k, b))


FLOATS: tuple[Callable[..., torch.Tensor], ...] = (
    lambda x, k, b: x.sin() + 0.5, lambda x, k, b: (x @ WEIGHT).tanh(), lambda x, k, b: torch.where(b, x, -x * 0.5),
    lambda x, k, b: F.layer_norm(x, (4,)), lambda x, k, b: F.gelu(x), lambda x, k, b: x.sort(1, descending=True)[0],
    lambda x, k, b: x + k.unsqueeze(1).clamp(-3, 3), lambda x, k, b: x[k.remainder(3)] * 0.75,
    lambda x, k, b: x.flip(0).roll(1, 1), lambda x, k, b: x.softmax(0) - b.to(x.dtype),
    lambda x, k, b: x.cumsum(1).tanh(), lambda x, k, b: torch.where(torch.rand_like(x) < 2, x.cos(), k.unsqueeze(1)),
    lambda x, k, b: x.index_put((k.remainder(3), torch.arange(3)), x[0, :3].cos()),
)  # fmt: skip
INTEGERS: tuple[Callable[..., torch.Tensor], ...] = (
    lambda x, k, b: k + 1, lambda x, k, b: (k * 7 - 3) % 50, lambda x, k, b: k.flip(0), lambda x, k, b: -k // 2,
    lambda x, k, b: (x.clamp(-9, 9) * 4).to(torch.int64).sum(1), lambda x, k, b: b.sum(1), lambda x, k, b: k ^ 5,
    lambda x, k, b: x.argmax(1), lambda x, k, b: torch.maximum(k, k.roll(1)) & 63,
)  # fmt: skip
BOOLEANS: tuple[Callable[..., torch.Tensor], ...] = (
    lambda x, k, b: ~b, lambda x, k, b: x > 0.1, lambda x, k, b: b ^ (k > 0).unsqueeze(1), lambda x, k, b: b | (x < -1),
)  # fmt: skip
CONDITIONS: tuple[Callable[..., torch.Tensor], ...] = (
    lambda x, k, b: x.mean() > 0, lambda x, k, b: k.sum() % 2 == 0, lambda x, k, b: b.any(),
    lambda x, k, b: k[0] > k[1],
)  # fmt: skip


def _plain(draw: random.Random, depth: int) -> Step:
    new = draw.choice(FLOATS), draw.choice(INTEGERS), draw.choice(BOOLEANS)
    which = draw.randrange(3)
    return lambda v: (*v[:which], new[which](*v).contiguous(), *v[which + 1 :])


def _own(values: Sequence[torch.Tensor]) -> Tensors:
    return tuple(value.clone() for value in values)


def _while(draw: random.Random, depth: int) -> Step:
    body, most, goes_on = _block(draw, depth - 1), draw.choice((0, 1, 3, 6)), draw.choice(CONDITIONS)
    known = draw.random() < 0.4

    def condition(i: torch.Tensor, *v: torch.Tensor) -> torch.Tensor:
        return i < most if known else (i < most) & goes_on(*v)

    def step(i: torch.Tensor, *v: torch.Tensor) -> Any:
        return i + 1, *_own(body(v))

    def run(v: Tensors) -> Tensors:
        _, *values = while_loop(condition, step, (torch.tensor(0), *_own(v)))
        return tuple(values)

    return run


def _cond(draw: random.Random, depth: int) -> Step:
    yes, no, decides = _block(draw, depth - 1), _block(draw, depth - 1), draw.choice(CONDITIONS)
    return lambda v: tuple(torch.cond(decides(*v), lambda *v: _own(yes(v)), lambda *v: _own(no(v)), tuple(v)))


def _scan(draw: random.Random, depth: int) -> Step:
    body, times = _block(draw, 0), draw.choice((1, 50))

    def run(v: Tensors) -> Tensors:
        x, k, b = v
        rows = x.repeat(times, 1)

        def combine(c: torch.Tensor, row: torch.Tensor) -> Any:
            new, *_ = body(((c * 0.5 + row).expand(3, 4), k, b))
            return new[0].clone(), (new[1] * 0.5).clone()

        last, made = scan(combine, x[0].clone(), rows)
        return (last + made[-3:]).contiguous(), k, b

    return run


def _map(draw: random.Random, depth: int) -> Step:
    op, times = draw.choice(FLOATS[:2]), draw.choice((1, 45))
    return lambda v: (map_rows(lambda row: op(row, None, None) * 1, v[0].repeat(times, 1))[-3:].contiguous(), *v[1:])


def _complex(draw: random.Random, depth: int) -> Step:
    """A branch or a loop that takes and returns complex numbers."""
    body, decides, most = _block(draw, depth - 1), draw.choice(CONDITIONS), draw.choice((0, 1, 3))
    factor, branches = complex(draw.uniform(-1, 1), draw.uniform(-1, 1)), draw.random() < 0.5

    def step(z: torch.Tensor, k: torch.Tensor, b: torch.Tensor) -> Tensors:
        x, k, b = body((z.abs(), k, b))
        return (torch.complex(x, z.angle()) * factor, *_own((k, b)))

    def run(v: Tensors) -> Tensors:
        given = torch.complex(v[0], v[0].sin()), *_own(v[1:])
        if branches:
            z, k, b = torch.cond(decides(*v), step, lambda z, *o: (z.conj() * z * factor, *_own(o)), given)
        else:
            start = (torch.tensor(0), *given)
            _, z, k, b = while_loop(lambda i, *_: i < most, lambda i, *v: (i + 1, *step(*v)), start)
        return z.real + z.imag, k, b

    return run


KINDS = (_plain, _plain, _plain, _cond, _while, _while, _scan, _map, _complex)


def _block(draw: random.Random, depth: int, loop: bool = False) -> Step:
    """Some steps, one after the other; with a loop among them if `loop` is true."""
    kinds = [draw.choice(KINDS if depth > 0 else KINDS[:3]) for _ in range(draw.randint(1, 3))]
    steps = [kind(draw, depth) for kind in (*kinds, *([_while] if loop else []))]

    def run(v: Tensors) -> Tensors:
        for step in steps:
            v = step(v)
        return v

    return run

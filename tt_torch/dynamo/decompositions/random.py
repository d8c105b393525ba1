"""Random numbers: a counter-based generator in 32-bit integers, from a seed that each call draws on the host.

`tenstorrent::seed` is the only op that differs from call to call. `interface.py` makes it an input of the program,
so the device computes pure functions. The backward pass, and the ops that checkpointing repeats, see the same numbers
as the forward pass. The seed is drawn from the generator of the device that the random tensor is on, so that
torch.manual_seed and torch.tt.manual_seed make calls repeatable. The numbers differ from the numbers of eager PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import NotImplementedType
from typing import TypeAlias

import torch
from torch import Tensor
from torch.fx import GraphModule

from tt_torch.dynamo.calls import INTEGERS, draw_seeds
from tt_torch.dynamo.decompositions.registry import aten, decomposes
from tt_torch.tt_ops import choosing

LIBRARY = torch.library.Library("tenstorrent", "FRAGMENT")  # the composites are its other ops
# The function that makes the fake tensor chooses its device. `like` is the tensor whose form the numbers have. It says
# which chips of a mesh draw different numbers: see `dynamo/collectives.py`.
LIBRARY.define("seed(Tensor? like=None, *, Device? device=None) -> Tensor", tags=[torch.Tag.nondeterministic_seeded])
MOST_RUNNERS = 1 << 24  # the most exponential times for one multinomial: 64 MB
SEED = torch.ops.tenstorrent.seed.default
# A seed plus this number is the seed of a loop's next step. It is 2^32 divided by the golden ratio, and odd, so the
# sums are all 32-bit integers before one of them comes again (a Weyl sequence).
NEXT = 0x9E3779B9 - 2**32
Form: TypeAlias = Tensor | Sequence[int]  # the numbers have the shape of the tensor, or this shape
Place: TypeAlias = torch.device | torch.layout | bool | None  # device, layout and pin_memory of a new tensor


LIBRARY.impl("seed", lambda like=None, *, device=None: draw_seeds(1, device)[0], "CompositeExplicitAutograd")
torch.library.register_fake(
    "tenstorrent::seed", lambda like=None, *, device=None: draw_seeds(1, device)[0], lib=LIBRARY
)


def draw_for_one_chip(gm: GraphModule) -> None:
    """Removes the operands of the seeds in a graph. A program for one chip does not need the form of the numbers."""
    for node in gm.graph.find_nodes(op="call_function", target=SEED):
        node.args = ()


# --- bits


def _mix(x: Tensor) -> Tensor:
    """A bijection of 32-bit integers; each bit of the result depends on each bit of `x`."""
    shift = torch.ops.tenstorrent.logical_right_shift
    x = (x ^ shift(x, bits=16)) * 0x7FEB352D
    x = (x ^ shift(x, bits=15)) * (0x846CA68B - 2**32)
    return x ^ shift(x, bits=16)


def _bits(form: Form) -> Tensor:
    """Uniform int32: a hash of each element's position and the seed."""
    like, size = (form, form.shape) if isinstance(form, Tensor) else (None, form)
    place = torch.empty(0).device  # where new tensors are made
    first, second = torch.ops.tenstorrent.seed(like, device=place).unbind()
    position, step = first, 1
    for dim in reversed(range(len(size))):
        along = torch.arange(size[dim], dtype=torch.int32) * step
        position = position + along.reshape([-1] + [1] * (len(size) - 1 - dim))
        step *= size[dim]
    return _mix(_mix(position) ^ second)


def _high(bits: Tensor, count: int) -> Tensor:
    """The upper bits, as non-negative integers."""
    return torch.ops.tenstorrent.logical_right_shift(bits, bits=32 - count)


def _unit(bits: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Uniform numbers in [0, 1), in steps that the dtype can represent, as in PyTorch. float64 has float32's steps."""
    count = {torch.bfloat16: 8, torch.float16: 11}.get(dtype, 24)
    return _high(bits, count).to(dtype) * 2.0**-count


def _positive(bits: Tensor) -> Tensor:
    """Uniform numbers in (0, 1], whose logarithm is finite."""
    return (_high(bits, 24) + 1).to(torch.float32) * 2.0**-24


def _happens(form: Form, p: float) -> Tensor:
    """True with probability p. Integers are compared, so no float rounds it."""
    return _high(_bits(form), 24) < round(p * 2**24)


def _standard_normal(form: Form) -> Tensor:
    """Box and Muller's transform of two uniform numbers."""
    bits = _bits(form)
    radius = torch.sqrt(-2 * torch.log(_positive(bits)))
    return radius * torch.cos(2 * math.pi * _unit(_mix(bits + 1)))


def _uniform(form: Form, dtype: torch.dtype) -> Tensor:
    """Uniform numbers in [0, 1); of a complex dtype, both parts are such numbers, as in PyTorch."""
    if not dtype.is_complex:
        return _unit(_bits(form), dtype)
    return torch.complex(*(_unit(_bits(form), dtype.to_real()) for _ in range(2)))


def _normal(form: Form, dtype: torch.dtype, mean: float = 0, std: float = 1) -> Tensor:
    """Normal numbers. As in PyTorch, each part of complex numbers has this mean, and half of the variance."""
    if not dtype.is_complex:
        return (_standard_normal(form) * std + mean).to(dtype)
    return torch.complex(*(_standard_normal(form) * (std * math.sqrt(0.5)) + mean for _ in range(2))).to(dtype)


def _standard_exponential(form: Form) -> Tensor:
    return -torch.log(_positive(_bits(form)))


def _integers(form: Form, low: int, high: int, dtype: torch.dtype | None) -> Tensor | NotImplementedType:
    """Integers in [low, high), as remainders. The device's integers do not allow a range of more than 31 bits."""
    if high - low > 2**31 or low < INTEGERS[0] or high > INTEGERS[1]:
        return NotImplemented
    drawn = _high(_bits(form), 31)
    rest = drawn % (high - low) if high - low < 2**31 else drawn
    return (rest + low).to(dtype or torch.int64)


# --- tensors of a size, or like another


@decomposes(aten.rand.default)
def rand(size: Sequence[int], *, dtype: torch.dtype | None = None, **place: Place) -> Tensor:
    return _uniform(size, dtype or torch.get_default_dtype())


@decomposes(aten.rand_like.default)
def rand_like(x: Tensor, *, dtype: torch.dtype | None = None, **place: Place) -> Tensor:
    return _uniform(x, dtype or x.dtype)


@decomposes(aten.randn.default)
def randn(size: Sequence[int], *, dtype: torch.dtype | None = None, **place: Place) -> Tensor:
    return _normal(size, dtype or torch.get_default_dtype())


@decomposes(aten.randn_like.default)
def randn_like(x: Tensor, *, dtype: torch.dtype | None = None, **place: Place) -> Tensor:
    return _normal(x, dtype or x.dtype)


@decomposes(aten.randint.default)
def randint(
    high: int, size: Sequence[int], *, dtype: torch.dtype | None = None, **place: Place
) -> Tensor | NotImplementedType:
    return _integers(size, 0, high, dtype)


@decomposes(aten.randint.low)
def randint_low(
    low: int, high: int, size: Sequence[int], *, dtype: torch.dtype | None = None, **place: Place
) -> Tensor | NotImplementedType:
    return _integers(size, low, high, dtype)


@decomposes(aten.randint_like.default)
def randint_like(
    x: Tensor, high: int, *, dtype: torch.dtype | None = None, **place: Place
) -> Tensor | NotImplementedType:
    return _integers(x, 0, high, dtype or x.dtype)


@decomposes(aten.randint_like.low_dtype)
def randint_like_low(
    x: Tensor, low: int, high: int, *, dtype: torch.dtype | None = None, **place: Place
) -> Tensor | NotImplementedType:
    return _integers(x, low, high, dtype or x.dtype)


@decomposes(aten.randperm.default)
def randperm(n: int, *, dtype: torch.dtype = torch.int64, **place: Place) -> Tensor:
    """The order that sorts random integers. Two of these integers are rarely equal."""
    return torch.argsort(_bits((n,))).to(dtype)


# --- functional forms of the methods that fill a tensor


@decomposes(aten.uniform.default)
def uniform(x: Tensor, low: float = 0, high: float = 1, generator: None = None) -> Tensor:
    return rand_like(x) * (high - low) + low


@decomposes(aten.normal_functional.default)
def normal(x: Tensor, mean: float = 0, std: float = 1, generator: None = None) -> Tensor:
    return _normal(x, x.dtype, mean, std)


@decomposes(aten.log_normal.default)
def log_normal(x: Tensor, mean: float = 1, std: float = 2, generator: None = None) -> Tensor:
    return torch.exp(_standard_normal(x) * std + mean).to(x.dtype)


@decomposes(aten.exponential.default)
def exponential(x: Tensor, rate: float = 1, generator: None = None) -> Tensor:
    return (_standard_exponential(x) / rate).to(x.dtype)


@decomposes(aten.geometric.default)
def geometric(x: Tensor, p: float, generator: None = None) -> Tensor:
    return torch.ceil(_standard_exponential(x) / -math.log1p(-p)).clamp_min(1).to(x.dtype)


@decomposes(aten.cauchy.default)
def cauchy(x: Tensor, median: float = 0, sigma: float = 1, generator: None = None) -> Tensor:
    return (median + sigma * torch.tan(math.pi * (_positive(_bits(x)) - 0.5))).to(x.dtype)


# --- with probabilities or parameters from the program


@decomposes(aten.bernoulli.p)
def bernoulli_p(x: Tensor, p: float, generator: None = None) -> Tensor:
    return _happens(x, p).to(x.dtype)


@decomposes(aten.bernoulli.default)
def bernoulli(p: Tensor, generator: None = None) -> Tensor:
    return (_unit(_bits(p)) < p).to(p.dtype)


@decomposes(aten.bernoulli.Tensor)
def bernoulli_tensor(x: Tensor, p: Tensor, generator: None = None) -> Tensor:
    return (_unit(_bits(x)) < p).to(x.dtype)


@decomposes(aten.normal.Tensor_Tensor, aten.normal.Tensor_float, aten.normal.float_Tensor)
def normal_around(mean: Tensor | float, std: Tensor | float = 1, generator: torch.Generator | None = None) -> Tensor:
    dtype = next(v.dtype for v in (mean, std) if isinstance(v, Tensor))
    return _normal(torch.add(mean, std), dtype) * std + mean


@decomposes(aten.normal.float_float)
def normal_of_size(
    mean: float,
    std: float,
    size: Sequence[int],
    *,
    generator: None = None,
    dtype: torch.dtype | None = None,
    **place: Place,
) -> Tensor:
    return _normal(size, dtype or torch.get_default_dtype(), mean, std)


@decomposes(aten.native_dropout.default)
def native_dropout(x: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    if train is False or p == 0:
        return x.clone(), torch.ones(x.shape, dtype=torch.bool)
    kept = _happens(x, 1 - p)
    factors = torch.where(kept, x.new_full((), 1 / (1 - p) if p < 1 else 0.0), 0)
    return x * factors, kept  # eager PyTorch multiplies, too: an infinity that is dropped is NaN


@decomposes(aten.rrelu_with_noise_functional.default)
def rrelu(
    x: Tensor, noise: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: None = None
) -> tuple[Tensor, Tensor]:
    """`noise` gets the factor of each element, for the backward pass."""
    if not training:
        return torch.where(x > 0, x, x * ((lower + upper) / 2)), noise.clone()
    factors = torch.where(x > 0, 1, rand_like(x) * (upper - lower) + lower)
    return x * factors, factors


@decomposes(aten.multinomial.default)
def multinomial(weights: Tensor, count: int, replacement: bool = False, generator: None = None) -> Tensor:
    """Draws by exponential times whose rates are the weights: the category with the shortest time is drawn. Without
    replacement, the categories with the shortest times of one draw are taken. Many draws with replacement search random
    numbers in the sums of the weights instead, because their times would fill the memory."""
    if replacement and weights.numel() * count > MOST_RUNNERS:
        return _searched(weights, count)
    if replacement or count == 1:
        runners = weights.unsqueeze(-2).expand(*weights.shape[:-1], count, weights.shape[-1])
        return (runners / _standard_exponential(runners)).argmax(-1)
    return torch.topk(weights / _standard_exponential(weights), count, -1).indices


@decomposes(torch.ops.tt.sampling.default)
def sampling(
    values: Tensor, indices: Tensor, k: Tensor, p: Tensor, temp: Tensor, seed: int = 0
) -> Tensor | NotImplementedType:
    """The op's own formula. With a seed, the op runs in eager PyTorch, whose generator gives the same numbers."""
    return NotImplemented if seed else choosing.sampling(values, indices, k, p, temp)


def _searched(weights: Tensor, count: int) -> Tensor:
    """Draws with replacement: the first category up to which the weights add up to more than a random number.

    A category with the weight 0 has the same sum as the category before it, so it is never the first one. Each number
    is smaller than the sum of all weights, also after it was rounded.
    """
    sums = weights.to(torch.float32).cumsum(-1)
    largest = sums[..., -1:] * (1 - 2**-23)
    drawn = rand_like(sums[..., -1:].expand(*weights.shape[:-1], count))
    numbers = torch.minimum(drawn * sums[..., -1:], largest)
    return torch.searchsorted(sums, numbers, right=True)

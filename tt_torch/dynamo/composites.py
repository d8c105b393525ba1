"""Ops that TTNN computes as a whole, as custom ops of the namespace `tenstorrent`.

Each is defined by a plain PyTorch function: it runs on the CPU, and its trace is the decomposition that goes
into StableHLO beside the composite. Names and operands are those that tt-mlir legalizes
(`tenstorrent.layer_norm`, ...), so that its compiler can take our StableHLO too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F

from tt_torch.dynamo.decompositions.convolution import transposed_convolution
from tt_torch.dynamo.types import Argument, Arguments, Function, Target
from tt_torch.torch_private.ops import OpOverload, schema
from tt_torch.torch_private.tracing import make_fx

NAMESPACE = "tenstorrent"
LIBRARY = torch.library.Library(NAMESPACE, "DEF")
FUNCTIONS: dict[OpOverload, Function] = {}
REPLACED: dict[OpOverload, OpOverload] = {}  # an ATen op: the composite in its place


def composite(
    signature: str, *replaced: OpOverload, on_host: Function | None = None, tags: Sequence[torch.Tag] = ()
) -> Callable[[Function], OpOverload]:
    """Registers a function as the op `tenstorrent::<its name><signature>`, with these tags, and returns the op.

    `on_host` computes constants and host parts. Without it, the function does, which must then be as exact as eager.
    It takes the place of the ATen ops `replaced`. Their operands come in the same order, and their attributes have the
    same names. Other ATen ops have a rule in passes/use_composites.py.
    """

    def register(function: Function) -> OpOverload:
        name = function.__name__
        LIBRARY.define(f"{name}{signature}", tags=tags)
        LIBRARY.impl(name, function, "CompositeExplicitAutograd")
        if on_host is not None:
            LIBRARY.impl(name, on_host, "CPU")
        op = getattr(getattr(torch.ops, NAMESPACE), name).default
        FUNCTIONS[op] = function
        REPLACED.update(dict.fromkeys(replaced, op))
        return op

    return register


@composite("(Tensor input) -> Tensor", on_host=F.gelu)
def gelu(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5 * (1 + torch.erf(x * math.sqrt(0.5)))


@composite("(Tensor input) -> Tensor", on_host=partial(F.gelu, approximate="tanh"))
def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


@composite("(Tensor input) -> Tensor", on_host=torch.erfc)
def erfc(x: torch.Tensor) -> torch.Tensor:
    return 1 - torch.erf(x)


@composite("(Tensor lhs, Tensor rhs) -> Tensor", on_host=torch.remainder)
def remainder(lhs: torch.Tensor, rhs: torch.Tensor) -> torch.Tensor:
    """The remainder with the sign of the divisor. Both operands have the same dtype."""
    rest = torch.fmod(lhs, rhs)
    return torch.where((rest != 0) & ((rest < 0) != (rhs < 0)), rest + rhs, rest)


@composite(
    "(Tensor input, Tensor weight, Tensor? bias, *, int[] stride, int[] padding, int[] output_padding, "
    "int[] dilation, int groups) -> Tensor"
)
def conv_transpose2d(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, **window: int | Sequence[int]
) -> torch.Tensor:
    return transposed_convolution(x, weight, bias, **window)


@composite(
    "(Tensor input, *, int[] kernel_size, int[] stride, int[] padding, int[] dilation)"
    " -> (Tensor result, Tensor indices)"
)
def max_pool2d_with_indices(x: torch.Tensor, **window: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ops.aten.max_pool2d_with_indices(x, *window.values())


@composite("(Tensor input, *, int dim) -> Tensor", torch.ops.aten.cumprod.default, on_host=torch.cumprod)
def cumprod(x: torch.Tensor, *, dim: int) -> torch.Tensor:
    """Cumulative products, computed as products of the last 1, 2, 4, ... elements."""
    size, reach = x.shape[dim], 1
    while reach < size:
        products = x.narrow(dim, reach, size - reach) * x.narrow(dim, 0, size - reach)
        x, reach = torch.cat([x.narrow(dim, 0, reach), products], dim), 2 * reach
    return x


def _sort_on_host(x: torch.Tensor, *, dim: int, descending: bool, stable: bool) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.sort(x, stable=stable, dim=dim, descending=descending)


@composite(
    "(Tensor input, *, int dim, bool descending, bool stable) -> (Tensor values, Tensor indices)",
    on_host=_sort_on_host,
)
def sort(x: torch.Tensor, *, dim: int, descending: bool, stable: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """A stable sort. torch-mlir only has the sort that may reorder equal elements; lowering.py makes it stable."""
    return torch.sort(x, dim, descending)


@composite(
    "(Tensor input, *, int k, int dim, bool largest, bool sorted) -> (Tensor values, Tensor indices)",
    torch.ops.aten.topk.default,
)
def topk(x: torch.Tensor, *, k: int, dim: int, largest: bool, sorted: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """The k largest or smallest elements, always sorted: without `sorted`, PyTorch allows any order."""
    return torch.topk(x, k, dim, largest)


@composite("(Tensor input, *, int bits) -> Tensor", tags=[torch.Tag.pointwise])
def logical_right_shift(x: torch.Tensor, *, bits: int) -> torch.Tensor:
    """Shifts int32 by 1 to 31 bits to the right; the new bits are zeros."""
    kept = torch.full_like(x, 2 ** (32 - bits) - 1)
    return torch.bitwise_right_shift(x, torch.full_like(x, bits)) & kept


@composite("(Tensor input, Tensor index, Tensor source, *, int dim, str reduce) -> Tensor")
def scatter(x: torch.Tensor, index: torch.Tensor, source: torch.Tensor, *, dim: int, reduce: str) -> torch.Tensor:
    """Index and source have one shape; `reduce` is "" (overwrite), "sum", "prod", "amax" or "amin"."""
    if reduce in ("", "sum"):
        return x.scatter_add(dim, index, source) if reduce else x.scatter(dim, index, source)
    least, most = (-math.inf, math.inf) if x.is_floating_point() else (-(2**31), 2**31 - 1)
    neutral = {"prod": 1, "amax": least, "amin": most}[reduce]
    combine = {"prod": torch.mul, "amax": torch.maximum, "amin": torch.minimum}[reduce]
    hit = index.movedim(dim, -1).unsqueeze(-1) == torch.arange(x.shape[dim])
    spread = torch.where(hit, source.movedim(dim, -1).unsqueeze(-1), neutral)
    reduced = getattr(torch, reduce)(spread, -2).to(x.dtype)  # products of integers are int64
    others = [(d, size) for d, size in enumerate(index.shape) if d != dim]
    parts = [x]  # each is a part of the one before; the last one is the part that the index can reach
    for d, size in others:
        parts.append(parts[-1].narrow(d, 0, size))
    result = combine(parts.pop(), reduced.movedim(-1, dim))
    for (d, size), whole in zip(others[::-1], parts[::-1], strict=True):
        result = torch.cat([result, whole.narrow(d, size, whole.shape[d] - size)], d)
    return result


@composite(
    "(Tensor input, Tensor? weight, Tensor? bias, *, int[] normalized_shape, float epsilon) -> Tensor",
    on_host=lambda x, weight, bias, *, normalized_shape, epsilon: F.layer_norm(
        x, normalized_shape, weight, bias, epsilon
    ),
)
def layer_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    *,
    normalized_shape: list[int],
    epsilon: float,
) -> torch.Tensor:
    dims = list(range(-len(normalized_shape), 0))
    centred = x - x.mean(dims, keepdim=True)
    y = centred * torch.rsqrt((centred * centred).mean(dims, keepdim=True) + epsilon)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


@composite("(Tensor query, Tensor key, Tensor value, Tensor? attention_mask, *, bool is_causal, float scale) -> Tensor")
def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    is_causal: bool,
    scale: float,
) -> torch.Tensor:
    """The mask is added to the scores. Query, key and value have the same number of heads."""
    scores = torch.matmul(query * scale, key.transpose(-2, -1))
    if is_causal:
        rows, columns = scores.shape[-2:]
        hidden = torch.arange(columns).unsqueeze(0) > torch.arange(rows).unsqueeze(1)
        scores = torch.where(hidden, float("-inf"), scores)
    if attention_mask is not None:
        scores = scores + attention_mask
    return torch.matmul(torch.softmax(scores, -1), value)


@dataclass(frozen=True)
class Form:
    """A composite with its tensor types and attributes. All nodes of one form share a decomposition."""

    symbol: str
    name: str
    attributes: Arguments
    body: torch.fx.GraphModule


def forms(graph: torch.fx.Graph) -> list[Form]:
    """The form of each composite node, in the order of the graph. Equal nodes share a form."""
    known: dict[tuple[Target, str, str], Form] = {}
    result = []
    for node in graph.nodes:
        if node.target in FUNCTIONS:
            values = [a.meta["val"] if isinstance(a, torch.fx.Node) else a for a in node.args]
            types = [(tuple(v.shape), v.dtype) if isinstance(v, torch.Tensor) else v for v in values]
            key = (node.target, str(types), str(node.kwargs))
            if key not in known:
                known[key] = _form(node, values, len(known))
            result.append(known[key])
    return result


def _form(node: torch.fx.Node, values: list[Argument], number: int) -> Form:
    name = schema(node.target).name.replace("::", ".")
    mode = next(v.fake_mode for v in values if v is not None)
    with mode:  # new tensors, because an operand that is used twice must still be two arguments
        present = [torch.empty_strided(v.shape, v.stride(), dtype=v.dtype) for v in values if v is not None]

    def call(*tensors: torch.Tensor) -> torch.Tensor:
        given = iter(tensors)
        return FUNCTIONS[node.target](*(None if v is None else next(given) for v in values), **node.kwargs)

    with mode, torch.no_grad():
        body = make_fx(call)(*present)
    return Form(f"{name}_{number}", name, dict(node.kwargs), body)

"""Attention of queries that may attend to no key gives 0. Prompts that are padded on the left have such queries."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

import tt_torch
from tt_torch.wire.calls import device_ops, op_histogram
from tt_torch.wire.decode import decode

HEADS, ROWS, KEYS = 4, 5, 9


def operands(dtype: torch.dtype, size: int, own: int) -> list[torch.Tensor]:
    shapes = ((2, HEADS, ROWS, size), (2, own, KEYS, size), (2, own, KEYS, size))
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


def drawn_mask(generator: torch.Generator, form: str, dtype: torch.dtype) -> torch.Tensor:
    """A mask of a random shape that broadcasts. About one row in three sees no key."""
    shapes = [(2, HEADS, ROWS, KEYS), (2, 1, ROWS, KEYS), (1, 1, ROWS, KEYS), (ROWS, KEYS), (2, 1, 1, KEYS), (ROWS, 1)]
    shape = shapes[int(torch.randint(len(shapes), (), generator=generator))]
    sees = torch.rand(shape, generator=generator) < 0.6
    sees &= torch.rand((*shape[:-1], 1), generator=generator) < 0.7
    return sees if form == "bool" else torch.where(sees, torch.randn(shape, generator=generator), -math.inf).to(dtype)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("form", ["bool", "additive"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_query_that_sees_no_key_gives_zero(dtype: torch.dtype, form: str, seed: int) -> None:
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    inputs = operands(dtype, size=32 if seed % 2 else 8, own=2 if seed % 4 > 1 else HEADS)
    mask = drawn_mask(generator, form, dtype)

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=k.shape[1] != HEADS)

    compiled = torch.compile(attend, backend=tt_torch.backend, dynamic=False, options={"fallback": "error"})
    tolerance = 1e-5 if dtype == torch.float32 else 3e-2
    results = [f(*inputs) for f in (compiled, attend)]
    weights = torch.randn(results[0].shape, dtype=dtype)
    gradients = [torch.autograd.grad((result * weights).sum(), inputs) for result in results]
    torch.testing.assert_close(*results, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(*gradients, rtol=tolerance, atol=tolerance)


class Causal(torch.nn.Module):
    """Attention with a causal mask that is a constant. With `hidden=1` the first query sees no key."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden

    def forward(self, q: torch.Tensor) -> torch.Tensor:
        places = torch.arange(ROWS)
        return F.scaled_dot_product_attention(q, q, q, attn_mask=places[None] + self.hidden <= places[:, None])


@pytest.mark.parametrize("hidden", [0, 1])
def test_a_constant_mask_that_hides_no_row_costs_no_op(hidden: int) -> None:
    model, q = Causal(hidden).eval(), torch.randn(1, 2, ROWS, 8)
    program = tt_torch.compile_model(model, (q,))
    torch.testing.assert_close(program(q), model(q))
    assert op_histogram(decode(program.binary))["EltwiseTernaryWhereOp"] == hidden


def lower(rows: int, columns: int) -> torch.Tensor:
    return torch.arange(rows)[:, None] >= torch.arange(columns)


LOWEST = torch.finfo(torch.bfloat16).min
KNOWN_MASKS = {  # how a mask is made, the number of keys for 32 queries, and what is left of it
    "of all keys": (lambda keys: torch.ones(32, keys, dtype=torch.bool), 64, "nothing"),
    "of no key": (lambda keys: torch.full((32, keys), 0, dtype=torch.bool), 64, "mask"),
    "lower": (lambda keys: lower(32, keys), 32, "causal"),
    "lower, fewer queries": (lambda keys: lower(32, keys), 64, "mask"),  # the library takes no other form
    "lower, of one row": (lambda keys: lower(1, keys), 32, "mask"),
    "lowest numbers": (lambda keys: torch.where(lower(32, keys), 0.0, LOWEST).bfloat16(), 32, "causal"),
    "low numbers": (lambda keys: torch.where(lower(32, keys), 0.0, -9.0).bfloat16(), 32, "mask"),
}


@pytest.mark.parametrize("make, keys, left", KNOWN_MASKS.values(), ids=KNOWN_MASKS)
def test_a_known_mask_is_an_attribute_if_it_is_causal(
    make: Callable[[int], torch.Tensor], keys: int, left: str
) -> None:
    query, key = (torch.randn(1, 2, size, 32).bfloat16() for size in (32, keys))

    def attend(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, k, attn_mask=make(keys))

    program = tt_torch.compile_model(attend, (query, key))
    torch.testing.assert_close(program(query, key), attend(query, key), rtol=3e-2, atol=3e-2)
    (op,) = (op for op in device_ops(decode(program.binary)) if op.name == "ScaledDotProductAttentionOp")
    assert op.record["is_causal"] == (left == "causal")
    assert ("attention_mask" in op.record) == (left == "mask")

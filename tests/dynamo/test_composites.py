"""Each composite's function computes the same as the ATen op. StableHLO has this function as the op's decomposition."""

from __future__ import annotations

import math

import pytest
import torch
from op_rows import draw
from op_table_ordering import ORDERINGS

from tt_torch.dynamo import composites
from tt_torch.dynamo.passes.use_composites import use_composites
from tt_torch.mlir import ods
from tt_torch.mlir.ttir.from_stablehlo.composites import COMPOSITES
from tt_torch.torch_private.tracing import make_fx

F, i64 = torch.nn.functional, torch.int64
X, W, B = torch.linspace(-4, 4, 24).reshape(4, 6), torch.linspace(1, 2, 6), torch.linspace(-1, 1, 6)
Q, K, V = (torch.linspace(-1, n, 2 * 3 * 5 * 4).reshape(2, 3, 5, 4).sin() for n in (2, 3, 4))
MASK = torch.where(torch.arange(5) < 4, 0.0, -math.inf).expand(2, 1, 5, 5)
INDEX, SOURCE = torch.tensor([[0, 2], [1, 0]]), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
norm, attention = composites.layer_norm, composites.scaled_dot_product_attention
NORM = {"normalized_shape": [6], "epsilon": 1e-5}
IMAGES, FILTERS = (
    torch.linspace(-1, 2, 2 * 4 * 15).reshape(2, 4, 5, 3).sin(),
    torch.linspace(-1, 1, 48).reshape(4, 2, 3, 2),
)
TRANSPOSED = {"stride": [3, 1], "padding": [0, 1], "output_padding": [2, 0], "dilation": [1, 1], "groups": 2}
POOL = {"kernel_size": [3, 2], "stride": [2, 1], "padding": [1, 0], "dilation": [1, 1]}


def extremes(dtype):
    """Integers of 32 bits, of shape (2, 4), with the largest and the smallest among them."""
    return (
        torch.tensor([-(2**31), 2**31 - 1, 0, 7, -7, 2**31 - 1, -(2**31), 1, 2, 3, 4, 5]).to(dtype).reshape(2, 6)[:, :4]
    )


CASES = {
    "gelu": lambda: (composites.gelu(X), F.gelu(X)),
    "gelu_tanh": lambda: (composites.gelu_tanh(X), F.gelu(X, approximate="tanh")),
    "erfc": lambda: (composites.erfc(X), torch.erfc(X)),
    "remainder": lambda: (composites.remainder(X, B + 0.1), torch.remainder(X, B + 0.1)),
    "remainder of exact multiples": lambda: (
        composites.remainder(torch.tensor([-4.0, 4.0]), torch.tensor([2.0, -2.0])),
        torch.zeros(2),
    ),
    "scatter": lambda: (
        composites.scatter(X, INDEX, SOURCE, dim=1, reduce=""),
        torch.scatter(X, 1, INDEX, SOURCE),
    ),
    "scatter sum": lambda: (
        composites.scatter(X, INDEX * 0, SOURCE, dim=0, reduce="sum"),
        torch.scatter_add(X, 0, INDEX * 0, SOURCE),
    ),
    "conv_transpose2d": lambda: (
        composites.conv_transpose2d(IMAGES, FILTERS, B[:4], **TRANSPOSED),
        F.conv_transpose2d(IMAGES, FILTERS, B[:4], **TRANSPOSED),
    ),
    "max_pool2d_with_indices": lambda: (
        composites.max_pool2d_with_indices(IMAGES, **POOL),
        F.max_pool2d(IMAGES, **POOL, return_indices=True),
    ),
    "logical_right_shift": lambda: (
        torch.stack([composites.logical_right_shift(extremes(torch.int32), bits=n) for n in range(1, 32)]),
        torch.stack([(extremes(i64) % 2**32 >> n).to(torch.int32) for n in range(1, 32)]),
    ),
    "sort": lambda: (composites.sort(X, dim=0, descending=True, stable=False), torch.sort(X, 0, descending=True)),
    "scatter prod": lambda: (
        composites.scatter(X, INDEX, SOURCE, dim=1, reduce="prod"),
        torch.scatter_reduce(X, 1, INDEX, SOURCE, "prod"),
    ),
    "scatter amax": lambda: (
        composites.scatter(X, INDEX * 0, SOURCE, dim=0, reduce="amax"),
        torch.scatter_reduce(X, 0, INDEX * 0, SOURCE, "amax"),
    ),
    "scatter amin": lambda: (
        composites.scatter(X, INDEX, SOURCE, dim=1, reduce="amin"),
        torch.scatter_reduce(X, 1, INDEX, SOURCE, "amin"),
    ),
    **{
        f"scatter {reduce} of {dtype}": lambda reduce=reduce, dtype=dtype: (
            composites.scatter(extremes(dtype), INDEX, extremes(dtype)[:2, 2:4] // 2, dim=1, reduce=reduce),
            torch.scatter_reduce(extremes(dtype), 1, INDEX, extremes(dtype)[:2, 2:4] // 2, reduce),
        )
        for reduce in ("sum", "prod", "amax", "amin")
        for dtype in (torch.int32, torch.int64)
    },
    "layer_norm": lambda: (norm(X, W, B, **NORM), F.layer_norm(X, (6,), W, B)),
    "layer_norm, weight": lambda: (norm(X, W, None, **NORM), F.layer_norm(X, (6,), W)),
    "layer_norm, plain": lambda: (norm(X, None, None, **NORM), F.layer_norm(X, (6,))),
    "attention": lambda: (
        attention(Q, K, V, None, is_causal=False, scale=0.5),
        F.scaled_dot_product_attention(Q, K, V),
    ),
    "attention, causal": lambda: (
        attention(Q, K, V, None, is_causal=True, scale=0.5),
        F.scaled_dot_product_attention(Q, K, V, is_causal=True),
    ),
    "attention, causal and not square": lambda: (
        attention(Q[:, :, :3], K, V, None, is_causal=True, scale=0.5),
        F.scaled_dot_product_attention(Q[:, :, :3], K, V, is_causal=True),
    ),
    "attention, mask and scale": lambda: (
        attention(Q, K, V, MASK, is_causal=False, scale=0.3),
        F.scaled_dot_product_attention(Q, K, V, attn_mask=MASK, scale=0.3),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_composite_equals_aten(case):
    torch.testing.assert_close(*CASES[case](), atol=1e-6, rtol=1e-4)


def test_a_composite_in_the_place_of_aten_ops():
    """The CPU computes graphs of the op table with composites in place of ATen ops.

    These composites need no rule of their own.
    """
    seen = set()
    for row, dtype in ((each, dtype) for each in ORDERINGS for dtype in each.dtypes):
        inputs = [draw(i, dtype) if isinstance(i, tuple) else i(dtype) for i in row.inputs]
        graph = make_fx(row.fn, tracing_mode="fake")(*inputs)
        replaced = {node.target for node in graph.graph.nodes} & composites.REPLACED.keys()
        if replaced and inputs[0].dim():
            use_composites(graph.graph)
            graph.recompile()
            torch.testing.assert_close(graph(*inputs), row.fn(*inputs))
            seen |= {composites.REPLACED[target] for target in replaced}
    assert seen == set(composites.REPLACED.values())


def test_every_composite_has_a_case():
    names = {
        op._schema.name.split("::")[1].replace("scaled_dot_product_", "")
        for op in composites.FUNCTIONS.keys() - composites.REPLACED.values()
    }
    assert names == {case.split(",")[0].split()[0] for case in CASES}


def test_every_composite_is_an_op_of_ttir():
    names = {op._schema.name.replace("::", ".") for op in composites.FUNCTIONS} - COMPOSITES.keys()
    assert {name.replace("tenstorrent.", "ttir.") for name in names} <= ods.OPS.keys()

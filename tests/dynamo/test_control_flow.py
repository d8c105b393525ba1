"""Ops that call graphs: they are written out if the number of calls is known and small."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import tt_torch
from tt_torch.dynamo.control_flow import _Callable

X = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
Q = torch.randn(2, 4, 8, 16, generator=torch.Generator().manual_seed(1))
SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])
CAUSAL = create_block_mask(lambda b, h, i, j: i >= j, None, None, 8, 8, device="cpu")


@torch.compiler.nested_compile_region
def region(x: torch.Tensor) -> torch.Tensor:
    return x.sin() * 2


def branches(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda x: map_rows(lambda row: row * 2, x), torch.cos, (x,))


WITH_GRADIENTS = {
    "cond": branches,
    "the other branch": lambda x: branches(-x),
    "map": lambda x: map_rows(lambda row, y: row.softmax(-1) * y, x, x[0] + 1),
    "scan": lambda x: scan(lambda c, row: ((c * row).tanh(), c + row), x[0], x)[1],
    "a region twice": lambda x: region(region(x)),
}
FORWARD = {
    "flex_attention": lambda q: flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: s + 0.1 * (i - j)),
    "fewer heads of keys": lambda q: flex_attention(q, q[:, :2], q[:, 2:], enable_gqa=True, block_mask=CAUSAL),
    "in a branch": lambda q: torch.cond(
        q.sum() < 1e9, lambda q: torch.nn.functional.scaled_dot_product_attention(q, q, q), lambda q: q * 2, (q,)
    ),
    "reading a tensor": lambda q: flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: s * SLOPES[h]),
}


def compiled(function: Callable[..., Any], **config: Any) -> Callable[..., Any]:
    options = {"compiler_config": tt_torch.CompilerConfig(**config)}
    return torch.compile(function, backend=tt_torch.backend, options=options)


@pytest.mark.parametrize("name", WITH_GRADIENTS)
def test_results_and_gradients_of_unrolled_ops(name: str) -> None:
    theirs, ours = X.clone().requires_grad_(), X.clone().requires_grad_()
    expected = WITH_GRADIENTS[name](theirs)
    got = compiled(WITH_GRADIENTS[name], fallback="error")(ours)
    torch.testing.assert_close(got, expected)
    if name != "a region twice":  # eager PyTorch cannot compute the gradient of regions
        expected.square().sum().backward()
    else:
        theirs.grad = 8 * (2 * X.sin()).sin() * (2 * (2 * X.sin()).cos() * X.cos())
    got.square().sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.parametrize("name", FORWARD)
def test_attention_with_a_function_of_scores(name: str) -> None:
    torch.testing.assert_close(compiled(FORWARD[name], fallback="error")(Q), FORWARD[name](Q))


LONG = {
    "scan": lambda x: scan(lambda c, row: ((c * row).tanh(), c + row), x[0], x.repeat(50, 1))[1] * 2,
    "map": lambda x: map_rows(lambda row, y: row.softmax(-1) * y, x.repeat(50, 1), x[0] + 1),
}


@pytest.mark.filterwarnings("error::tt_torch.driver.partition.HostFallbackWarning")
@pytest.mark.parametrize("name", LONG)
def test_long_scans_are_loops_on_the_device(name: str) -> None:
    theirs, ours = X.clone().requires_grad_(), X.clone().requires_grad_()
    expected, got = LONG[name](theirs), compiled(LONG[name])(ours)
    torch.testing.assert_close(got, expected)
    expected.square().sum().backward()
    got.square().sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("ops", [(0,), (0, 1), (1, 0)])
def test_one_op_with_an_effect_makes_a_branch_impure(ops: tuple[int, ...]) -> None:
    aten = torch.ops.aten
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    for op in ops:
        graph.call_function((aten._assert_async.msg, aten.relu.default)[op], (x, "positive")[: 2 - op])
    graph.output((x,))
    assert not _Callable(torch.fx.GraphModule(torch.nn.Module(), graph)).is_pure()

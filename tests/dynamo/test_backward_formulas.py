"""Gradients of decomposed graphs equal the gradients of eager PyTorch, and no op computes a whole backward formula."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._functorch.aot_autograd import aot_function
from torch.fx import GraphModule

from tt_torch.dynamo import composites  # noqa: F401  (defines the shifts)
from tt_torch.dynamo.decompositions import DECOMPOSITIONS
from tt_torch.dynamo.decompositions.registry import TAKEN

aten = torch.ops.aten
Function = Callable[..., torch.Tensor]
# The functions take x and t of the shape (3, 8), the class indices k of the 3 rows, and 8 weights w.
OF_ROWS: dict[str, Function] = {
    **{f.__name__: lambda x, t, k, w, f=f: f(x) for f in (
        F.elu, F.gelu, F.hardsigmoid, F.hardswish, F.hardtanh, F.leaky_relu, F.logsigmoid, F.mish, F.relu6, F.selu,
        F.sigmoid, F.silu, F.softplus, F.softshrink, F.hardshrink, F.tanh, F.tanhshrink, F.celu, F.softsign,
    )},
    "gelu tanh": lambda x, t, k, w: F.gelu(x, approximate="tanh"),
    "elu of three numbers": lambda x, t, k, w: aten.elu(x, 1.5, 0.5, 2.0),
    "softplus of two numbers": lambda x, t, k, w: F.softplus(x, 2.0, 0.5),
    "glu": lambda x, t, k, w: F.glu(x, -1),
    "prelu": lambda x, t, k, w: F.prelu(x, w),
    "threshold": lambda x, t, k, w: F.threshold(x, 0.3, 2.0),
    "rrelu": lambda x, t, k, w: F.rrelu(x),
    "logit": lambda x, t, k, w: torch.logit(x.sigmoid(), 0.1),
    "softmax": lambda x, t, k, w: F.softmax(x, 1),
    "log_softmax": lambda x, t, k, w: F.log_softmax(x, 0),
    "layer_norm": lambda x, t, k, w: F.layer_norm(x, (8,), w, w),
    "layer_norm of all": lambda x, t, k, w: F.layer_norm(x, (3, 8)),
    "rms_norm": lambda x, t, k, w: F.rms_norm(x, (8,), w, 1e-3),
    "windows of nothing": lambda x, t, k, w: x.sum().unfold(0, 0, 1).sum() + x.sum(),
    "rms_norm of all": lambda x, t, k, w: F.rms_norm(x, (3, 8)),
    "group_norm": lambda x, t, k, w: F.group_norm(x[..., None], 4, w, w),
    "batch_norm": lambda x, t, k, w: F.batch_norm(x, None, None, w, w, True),
    "batch_norm with update": lambda x, t, k, w: aten._batch_norm_with_update(x, w, w, w * 1, w * 1, 0.1, 1e-5)[0],
    "instance_norm": lambda x, t, k, w: F.instance_norm(x[None]),
    "mse_loss": lambda x, t, k, w: F.mse_loss(x, t),
    "mse_loss sum": lambda x, t, k, w: F.mse_loss(x, t, reduction="sum"),
    "l1_loss": lambda x, t, k, w: F.l1_loss(x, t),
    "smooth_l1_loss": lambda x, t, k, w: F.smooth_l1_loss(x, t, beta=0.7),
    "huber_loss": lambda x, t, k, w: F.huber_loss(x, t, delta=0.7),
    "soft_margin_loss": lambda x, t, k, w: F.soft_margin_loss(x, t.sign()),
    "binary_cross_entropy": lambda x, t, k, w: F.binary_cross_entropy(x.sigmoid(), t + 0.5, w),
    "binary_cross_entropy_with_logits": lambda x, t, k, w: F.binary_cross_entropy_with_logits(x, t + 0.5),
    "cross_entropy": lambda x, t, k, w: F.cross_entropy(x, k, w, ignore_index=0),
    "cross_entropy smoothed": lambda x, t, k, w: F.cross_entropy(x, k, label_smoothing=0.2),
    "kl_div": lambda x, t, k, w: F.kl_div(F.log_softmax(x, 1), t + 0.5, reduction="batchmean"),
    "embedding": lambda x, t, k, w: F.embedding(torch.tensor([2, 0, 2]), x, padding_idx=0),
    "select": lambda x, t, k, w: x[1] * x[:, 2:3].sum(),
    "slice": lambda x, t, k, w: x[1:, ::3] * 2,
    "unfold": lambda x, t, k, w: x.unfold(1, 4, 3) * 2,
    "diagonal": lambda x, t, k, w: x.diagonal(1) * 2,
    "trace": lambda x, t, k, w: x[:, :3].trace(),
    "cumulative": lambda x, t, k, w: x.cumsum(1) + x.cumprod(1),
    "std": lambda x, t, k, w: x.std(1) + x.var(1),
    "norm": lambda x, t, k, w: x.norm() + torch.linalg.vector_norm(x, 3, 1).sum(),
    "largest": lambda x, t, k, w: x.amax(1) + x.max(1)[0] + x.topk(2, 1)[0].sum(1),
    "sorted": lambda x, t, k, w: x.sort(1)[0] * t,
    "scattered": lambda x, t, k, w: torch.zeros(3, 8).scatter_add(1, torch.tensor([[0, 3], [1, 1], [7, 0]]), x[:, :2]),
    "picked": lambda x, t, k, w: x.gather(1, torch.tensor([[0, 3], [1, 1], [7, 0]])) + x[[0, 2, 0], :2],
    "logsumexp": lambda x, t, k, w: x.logsumexp(1),
    "renorm": lambda x, t, k, w: x.renorm(2, 0, 0.5),
}  # fmt: skip
# Here x has images of shape (2, 4, 6, 6), and k has the class of each pixel. The other arguments are as above.
OF_IMAGES: dict[str, Function] = {
    "reflection_pad1d": lambda x, t, k, w: F.pad(x[0], (2, 1), "reflect"),
    "reflection_pad2d": lambda x, t, k, w: F.pad(x, (2, 1, 0, 3), "reflect"),
    "reflection_pad3d": lambda x, t, k, w: F.pad(x[None], (2, 1, 0, 3, 1, 1), "reflect"),
    "nll_loss2d": lambda x, t, k, w: F.nll_loss(F.log_softmax(x, 1), k, ignore_index=2),
    "batch_norm": lambda x, t, k, w: F.batch_norm(x, None, None, w[4:], w[4:], True),
    "group_norm": lambda x, t, k, w: F.group_norm(x, 2, w[:4] / 2, w[4:]),
    "pixel_shuffle": lambda x, t, k, w: F.pixel_shuffle(x, 2),
    "pad": lambda x, t, k, w: F.pad(x, (1, -1, 2, 0)),
    "im2col": lambda x, t, k, w: F.unfold(x, 3, padding=1),
}


def gradient(function: Function, x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
    x = x.detach().clone().requires_grad_()
    result = function(x, *others)
    return torch.autograd.grad(result, x, torch.linspace(0.5, 1.5, result.numel()).reshape(result.shape))[0]


def check(function: Function, x: torch.Tensor, classes: torch.Tensor, repeats: bool = True) -> list[str]:
    """Compares gradients if `repeats` is true. Returns the backward formulas that are left in the graphs."""
    graphs: list[GraphModule] = []

    def keep(gm: GraphModule, inputs: Any) -> GraphModule:
        graphs.append(gm)
        return gm

    compiled = aot_function(function, keep, keep, decompositions=DECOMPOSITIONS)
    given = (x, torch.rand(3, 8) - 0.5, classes, torch.linspace(0.3, 1.2, 8))
    found, expected = gradient(compiled, *given), gradient(function, *given)
    if repeats:
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert len(graphs) == 2
    return [str(n.target) for gm in graphs for n in gm.graph.nodes if "backward" in str(n.target)]


@pytest.mark.parametrize("name", OF_ROWS)
def test_of_rows(name: str) -> None:
    x = torch.linspace(-3.7, 4.1, 24)[torch.randperm(24)].reshape(3, 8)
    assert check(OF_ROWS[name], x, torch.tensor([1, 0, 4])) == []


@pytest.mark.parametrize("name", OF_IMAGES)
def test_of_images(name: str) -> None:
    assert check(OF_IMAGES[name], torch.randn(2, 4, 6, 6), torch.randint(0, 4, (2, 6, 6))) == []


def test_a_formula_without_a_decomposition() -> None:
    """The formula runs on the host."""
    left = check(lambda x, t, k, w: torch._weight_norm(x, t.abs()[:, :1], 0), torch.randn(3, 8), torch.tensor([0]))
    assert left == ["aten._weight_norm_interface_backward.default"]


def test_dropout() -> None:
    """Dropout draws from another generator than eager PyTorch, so the gradients are not compared."""
    for dropped in (lambda x, t, k, w: F.dropout(x, 0.3), lambda x, t, k, w: aten.native_dropout(x, 0.3, True)[0]):
        assert check(dropped, torch.randn(3, 8), torch.tensor([0]), repeats=False) == []


def test_each_decomposition_of_pytorchs_is_named_once() -> None:
    assert [op for op, count in Counter(TAKEN).items() if count > 1] == []

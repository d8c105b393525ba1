"""Forward and backward on the device: attention, checkpointing, autocast, accumulation, frozen parameters."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.driver.executor import Executor
from tt_torch.tools.utils import calculate_pcc
from tt_torch.wire.decode import decode

OPTIONS = {"compiler_config": CompilerConfig(fallback="error")}


def compiled(function: Any) -> Any:
    return torch.compile(function, backend=tt_torch.backend, fullgraph=True, options=OPTIONS)


def gradients(function: Callable[..., torch.Tensor], inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The result, and the gradients of a weighted sum of it for the inputs that require gradients."""
    result = function(*inputs)
    weights = torch.linspace(-1, 2, result.numel()).reshape(result.shape)
    wanted = [x for x in inputs if x.requires_grad]
    return [result.detach(), *torch.autograd.grad((result.float() * weights).sum(), wanted)]


MASK = torch.rand(2, 1, 5, 7) > 0.3
MASK[..., 0] = True
ATTENTION: dict[str, tuple[int, dict[str, Any]]] = {
    "plain": (7, {}),
    "scaled": (7, {"scale": 0.3}),
    "boolean_mask": (7, {"attn_mask": MASK}),
    "additive_mask": (7, {"attn_mask": torch.randn(5, 7)}),
    "causal": (5, {"is_causal": True}),
    "grouped": (7, {"enable_gqa": True}),
}


@pytest.mark.parametrize("name", ATTENTION)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention(name: str, dtype: torch.dtype) -> None:
    length, options = ATTENTION[name]
    heads = 2 if options.get("enable_gqa") else 4
    mask = options.get("attn_mask")
    if mask is not None and mask.is_floating_point():
        options = options | {"attn_mask": mask.to(dtype)}
    sizes = [(2, 4, 5, 8), (2, heads, length, 8), (2, heads, length, 8)]
    inputs = [torch.randn(s).to(dtype).requires_grad_() for s in sizes]

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, **options)

    tolerance = 1e-5 if dtype == torch.float32 else 3e-2
    for got, wanted in zip(gradients(compiled(attend), inputs), gradients(attend, inputs), strict=True):
        assert got.dtype == wanted.dtype
        torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance)


def test_forward_of_training_keeps_the_attention_op(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = []
    call = Executor.__call__

    def record(self: Executor, inputs: Any) -> Any:
        programs.append(self.binary)
        return call(self, inputs)

    monkeypatch.setattr(Executor, "__call__", record)
    q = torch.randn(1, 2, 32, 32, dtype=torch.bfloat16, requires_grad=True)
    gradients(compiled(lambda q: F.scaled_dot_product_attention(q, q, q)), [q])
    forward, backward = (str(decode(binary)["programs"]) for binary in programs)
    assert "ScaledDotProductAttentionOp" in forward and "ScaledDotProductAttentionOp" not in backward


def test_attention_with_dropout() -> None:
    """All attention weights are equal here, so each result counts the weights that dropout has kept."""
    q = torch.zeros(1, 1, 4, 8, requires_grad=True)
    k, v = torch.randn(1, 1, 64, 8), torch.ones(1, 1, 64, 8)
    run = compiled(lambda q: F.scaled_dot_product_attention(q, k, v, dropout_p=0.5))
    torch.manual_seed(0)
    kept = run(q)[..., 0] * 32  # of 64, each with the weight 2 / 64
    torch.testing.assert_close(kept, kept.round())
    assert kept.min() > 16 and kept.max() < 48 and len(kept.unique()) > 1


def test_checkpointing_saves_less(monkeypatch: pytest.MonkeyPatch) -> None:
    saved = []

    def record(self: Executor, inputs: Any) -> Any:
        outputs = call(self, inputs)
        saved.append(len(outputs))
        return outputs

    call = Executor.__call__
    monkeypatch.setattr(Executor, "__call__", record)
    w = [torch.randn(6, 6, requires_grad=True) for _ in range(3)]
    x = torch.randn(4, 6, requires_grad=True)

    def block(x: torch.Tensor) -> torch.Tensor:
        for weight in w:
            x = F.gelu(x @ weight)
        return x

    functions = [block, lambda x: checkpoint(block, x, use_reentrant=False)]
    results = [gradients(compiled(f), [x]) for f in functions]
    for plain, anew in zip(*results, strict=True):
        torch.testing.assert_close(anew, plain, rtol=1e-4, atol=1e-5)
    plain_forward, _, checkpointed_forward, _ = saved
    assert checkpointed_forward < plain_forward


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("inside", [True, False])
def test_autocast(dtype: torch.dtype, inside: bool) -> None:
    model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))
    theirs, x = copy.deepcopy(model), torch.randn(16, 8)

    def run(model: nn.Module, call: Callable[..., Any]) -> list[torch.Tensor]:
        if inside:
            result = call(x)
        else:
            with torch.autocast("cpu", dtype=dtype):
                result = call(x)
        result.float().square().mean().backward()
        return [result.detach(), *(p.grad for p in model.parameters())]

    def within(model: nn.Module) -> Callable[..., Any]:
        def forward(x: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", dtype=dtype):
                return model(x)

        return forward if inside else model

    for got, wanted in zip(run(model, compiled(within(model))), run(theirs, within(theirs)), strict=True):
        assert got.dtype == wanted.dtype
        assert calculate_pcc(got.float(), wanted.float()) >= 0.999


def test_gradients_accumulate() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.GELU())
    theirs = copy.deepcopy(model)
    run = compiled(model)
    for again in (False, True, False):  # also by a second pass of the same call
        x = torch.randn(5, 4)
        for each in (run, theirs):
            loss = each(x).square().sum()
            loss.backward(retain_graph=again)
            if again:
                loss.backward()
    torch.testing.assert_close(model[0].weight.grad, theirs[0].weight.grad, rtol=1e-4, atol=1e-4)


def test_frozen_and_unused_parameters() -> None:
    model = nn.ModuleDict({"used": nn.Linear(4, 4), "frozen": nn.Linear(4, 4), "unused": nn.Linear(4, 4)})
    model["frozen"].requires_grad_(False)
    run = compiled(lambda x: model["frozen"](model["used"](x)))
    x = torch.randn(2, 4)
    run(x).square().sum().backward()
    used = list(model["used"].parameters())
    expected = torch.autograd.grad(model["frozen"](model["used"](x)).square().sum(), used)
    torch.testing.assert_close([p.grad for p in used], list(expected), rtol=1e-4, atol=1e-4)
    assert model["frozen"].weight.grad is None and model["unused"].weight.grad is None


def test_programs_with_and_without_gradients_side_by_side() -> None:
    """A call under no_grad and a call with gradients have separate programs."""
    model = nn.Linear(4, 3)
    run, x = compiled(model), torch.randn(2, 4)
    with torch.no_grad():
        first = run(x)
    run(x).sum().backward()
    torch.testing.assert_close(model.weight.grad, x.sum(0).expand(3, 4))
    with torch.no_grad():
        second = run(x)
    for result in (first, second):
        assert not result.requires_grad
        torch.testing.assert_close(result, model(x))

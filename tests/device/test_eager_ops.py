"""Ops on the device agree with the CPU: the rows of op_table.py, and ops that PyTorch has for accelerators only."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from op_rows import Row, draw
from op_table import FAMILIES
from torch import nn
from torch.utils import _pytree as pytree


def move(value: Any, device: str) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value


@pytest.mark.parametrize("family", FAMILIES)
def test_rows(family: str, subtests: pytest.Subtests) -> None:
    for row in FAMILIES[family]:
        with subtests.test(row.name):
            compare(row)


def compare(row: Row) -> None:
    torch.manual_seed(0)
    for dtype in row.dtypes:
        inputs = [draw(i, dtype) if isinstance(i, tuple) else i(dtype) for i in row.inputs]
        on_device = [move(value.clone(), "tt") if isinstance(value, torch.Tensor) else value for value in inputs]
        expected = row.fn(*inputs)
        with torch.device("tt"):  # for the rows that create tensors
            actual = row.fn(*on_device)
        actual = pytree.tree_map(lambda value: move(value, "cpu"), (actual, on_device))
        torch.testing.assert_close(actual, (expected, inputs), equal_nan=True, check_stride=False)


def gradients(model: nn.Module, inputs: torch.Tensor) -> list[torch.Tensor]:
    inputs = inputs.clone().requires_grad_()
    result = model(inputs)
    outputs = [out for out in pytree.tree_leaves(result) if out.requires_grad]
    torch.autograd.backward(outputs, [torch.ones_like(out) for out in outputs])
    return [value.cpu() for value in [*outputs, inputs.grad, *(p.grad for p in model.parameters())]]


MODULES = {
    "lstm": lambda: nn.LSTM(4, 5, num_layers=2, bidirectional=True),
    "gru": lambda: nn.GRU(4, 5),
    "gru_cell": lambda: nn.Sequential(nn.Flatten(0, 1), nn.GRUCell(4, 5, bias=False)),
    "rnn": lambda: nn.RNN(4, 5),
    "encoder": lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0),
    "batch_norm": lambda: nn.BatchNorm1d(2),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str) -> None:
    model, inputs = MODULES[name](), torch.randn(3, 2, 4)
    ours, theirs = gradients(copy.deepcopy(model).tt(), inputs.tt()), gradients(model, inputs)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("masked", [False, True])
def test_attention(masked: bool) -> None:
    def run(device: str) -> list[torch.Tensor]:
        q, k, v = (move(part, device).requires_grad_() for part in parts.detach().clone())
        mask = torch.randn(6, 6, generator=torch.Generator().manual_seed(1)).to(device) if masked else None
        result = F.scaled_dot_product_attention(q, k, v, mask, is_causal=not masked)
        return [value.cpu() for value in (result, *torch.autograd.grad(result.sum(), (q, k, v)))]

    parts = torch.randn(3, 2, 2, 6, 8)
    torch.testing.assert_close(run("tt"), run("cpu"))


def test_dropout() -> None:
    ones = torch.ones(4000, device="tt", requires_grad=True)
    torch.manual_seed(3)
    dropped = F.dropout(ones, 0.25)
    dropped.sum().backward()
    assert 0.2 < (dropped == 0).float().mean().item() < 0.3
    assert torch.equal(ones.grad, dropped.detach())
    torch.manual_seed(3)
    assert torch.equal(F.dropout(ones, 0.25), dropped)
    assert F.dropout(ones, 1.0).sum().item() == 0


def test_autocast() -> None:
    model, x = nn.Linear(4, 4).tt(), torch.randn(2, 4, device="tt")
    with torch.autocast("tt"):
        product = model(x)
        assert (product.dtype, F.softmax(product, -1).dtype) == (torch.bfloat16, torch.float32)
    assert model(x).dtype == torch.float32


def test_functional_transforms() -> None:
    a, b = torch.randn(3, 2, 2), torch.randn(3, 2, 2)
    torch.testing.assert_close(torch.vmap(torch.matmul)(a.tt(), b.tt()).cpu(), torch.vmap(torch.matmul)(a, b))
    assert torch.func.grad(lambda x: (x**2).sum())(torch.ones(2, device="tt")).cpu().tolist() == [2, 2]

"""Ops without a kernel on the device run on the CPU. They are counted. Settings can log them once or refuse them."""

from __future__ import annotations

import os

import pytest
import torch
from forked import Server

OP = "aten::linalg_qr.out"


def test_results_and_counts():
    torch.tt.clear_fallback_counts()
    matrix = torch.randn(3, 3)
    for _ in range(2):
        q, r = torch.linalg.qr(matrix.tt())
    assert q.is_tt and r.is_tt
    torch.testing.assert_close((q @ r).cpu(), matrix)
    assert torch.tt.fallback_counts() == {OP: 2}


def test_native_ops_do_not_fall_back():
    torch.tt.clear_fallback_counts()
    x = torch.randn(4, 4, device="tt", requires_grad=True)
    torch.nn.functional.cross_entropy(x.relu() @ x, torch.arange(4, device="tt")).backward()
    torch.optim.AdamW([x], foreach=True).step()
    torch.optim.AdamW([x], fused=True).step()
    assert torch.tt.fallback_counts() == {}


def test_error_mode(monkeypatch):
    monkeypatch.setenv("TT_TORCH_FALLBACK", "error")
    matrix = torch.eye(2, device="tt")
    with pytest.raises(NotImplementedError, match=f"{OP} has no kernel on device tt, and TT_TORCH_FALLBACK=error"):
        torch.linalg.qr(matrix)


def test_log_names_each_op_once(forks: Server):
    code = "import torch\nfor _ in range(3): torch.linalg.qr(torch.eye(2, device='tt'))"
    done = forks.run("-c", code, env={**os.environ, "TT_TORCH_LOG": "fallback"})
    assert done.stderr.count(f"{OP} has no kernel on the device and runs on the CPU") == 1


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8, torch.float32])
def test_histograms_take_integers_as_on_gpus(dtype: torch.dtype) -> None:
    """Transformers counts the tokens of each expert in this way on all devices but the CPU."""
    torch.tt.clear_fallback_counts()
    for bins in (2, 8, 61):
        x = torch.randint(bins + 3, (200,)).to(dtype)
        found = torch.histc(x.to("tt"), bins=bins, min=0, max=bins - 1)
        assert found.dtype == dtype and found.is_tt
        assert found.tolist() == [int((x == number).sum()) for number in range(bins)]
    assert torch.tt.fallback_counts() == {"aten::histc": 3}

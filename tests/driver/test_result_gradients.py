"""Gradients of the results of a compiled graph on a mesh, of which a loss may leave some out."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

from tt_torch.errors import MeshError


@pytest.fixture
def mesh():
    yield init_device_mesh("tt", (2, 2))
    dist.destroy_process_group()


def results(x, w):
    return x.sin(), (x @ w).sum(0), w.t().cos().unsqueeze(1), w + 1


def broken(x, w):
    left_out = results(x, w)
    torch._dynamo.graph_break()
    return [left_out[0] * 2]


@pytest.mark.parametrize("ways", [[[Shard(0), Replicate()], [Shard(1)] * 2], [[Shard(0), Shard(1)], [Replicate()] * 2]])
@pytest.mark.parametrize("function", [results, broken])
def test_a_loss_leaves_results_out(mesh, function, ways):
    run, given = torch.compile(function, backend="tt"), [torch.randn(8, 8), torch.randn(8, 8)]
    for i in range(len(function(*given))):
        whole = [x.clone().requires_grad_() for x in given]
        split = [distribute_tensor(x, mesh, way).requires_grad_() for x, way in zip(given, ways, strict=True)]
        for inputs, f in ((whole, function), (split, run)):
            f(*inputs)[i].sin().sum().backward()
        for x, expected in zip(split, whole, strict=True):
            found = torch.zeros(8, 8) if x.grad is None else x.grad.full_tensor().cpu()
            assert torch.allclose(found, torch.zeros(8, 8) if expected.grad is None else expected.grad, atol=1e-5)


def test_a_gradient_that_is_no_dtensor_is_refused(mesh):
    x = distribute_tensor(torch.randn(8, 8), mesh, [Shard(0), Replicate()]).requires_grad_()
    y = torch.compile(torch.sin, backend="tt")(x)
    each = distribute_tensor(torch.randn(16, 8), mesh, [Shard(0), Replicate()]).to_local()
    for gradient in (torch.ones(8, 8), torch.full((8, 8), torch.nan, device="tt"), each):
        with pytest.raises(MeshError, match=r"the gradient of a DTensor \(8, 8\) is no DTensor; give it to"):
            y.backward(gradient, retain_graph=True)
    y.backward(torch.zeros(8, 8, device="tt"))
    assert not x.grad.full_tensor().any()

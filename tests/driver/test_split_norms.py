"""`F.rms_norm` of DTensors whose last dimension is split: the program has one op of the library for few rows."""

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import tt_torch
from tt_torch.wire.calls import op_histogram
from tt_torch.wire.decode import decode

TOLERANCES = {torch.float32: {}, torch.bfloat16: {"rtol": 2e-2, "atol": 2e-2}}  # of three roundings to bfloat16


@pytest.fixture(autouse=True)
def no_mesh_afterwards():
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


class Normed(torch.nn.Module):
    """Two products with a norm between them. The norm's dimension is split, as it is where the products meet."""

    def __init__(self, width, dtype):
        super().__init__()
        self.up = torch.nn.Linear(32, width, bias=False, dtype=dtype)
        self.norm = torch.nn.RMSNorm(width, eps=1e-5, dtype=dtype)
        self.down = torch.nn.Linear(width, 32, bias=False, dtype=dtype)
        torch.nn.init.normal_(self.norm.weight)

    def forward(self, x):
        return self.down(self.norm(self.up(x)))


def split(model, mesh, axis):
    plan = {"up": ColwiseParallel(use_local_output=False), "down": RowwiseParallel(input_layouts=Shard(-1))}
    parallelize_module(model, mesh[axis], plan)
    weight = distribute_tensor(model.norm.weight.detach(), mesh[axis], [Shard(0)])
    model.norm.weight = torch.nn.Parameter(weight, requires_grad=False)
    return model.requires_grad_(False).eval()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape, axis", [((1, 4), "tp"), ((2, 4), "tp"), ((2, 4), "dp"), ((8, 1), "dp")])
@pytest.mark.parametrize("sizes, fused", [((1, 32), 1), ((2, 5, 32), 1), ((32, 32), 1), ((33, 32), 0)])
def test_modules(shape, axis, sizes, fused, dtype):
    torch.manual_seed(0)
    model, x = Normed(512, dtype), torch.randn(sizes, dtype=dtype)
    expected = model(x).detach()
    compiled = tt_torch.compile_model(
        split(model, init_device_mesh("tt", shape, mesh_dim_names=("dp", "tp")), axis), (x,)
    )
    result = compiled(x)
    torch.testing.assert_close(result.cpu(), expected, **TOLERANCES[dtype])
    ops = op_histogram(decode(compiled.binary))
    assert (ops["DistributedRMSNormOp"], ops["AllReduceOp"]) == (fused, 2 - fused)


@pytest.mark.parametrize(
    "placements", [(Replicate(), Shard(1)), (Shard(1), Replicate()), (Shard(0), Shard(1)), (Shard(1), Shard(1))]
)
@pytest.mark.parametrize("weighted", [True, False])
def test_functions(placements, weighted):
    """Without a weight that is a parameter, a norm stays a chain of ops."""
    torch.manual_seed(1)
    mesh = init_device_mesh("tt", (2, 4), mesh_dim_names=("dp", "tp"))
    x, weight = torch.randn(16, 512), torch.randn(512)
    along = [Shard(0) if p == Shard(1) else Replicate() for p in placements]
    expected = F.rms_norm(x, (512,), weight if weighted else None, 1e-5)
    model = torch.compile(lambda x, w: F.rms_norm(x, (512,), w, 1e-5), backend="tt")
    given = distribute_tensor(weight, mesh, along) if weighted else None
    result = model(distribute_tensor(x, mesh, placements), given)
    torch.testing.assert_close(result.full_tensor().cpu(), expected)

"""Sums, products, norms and largest values over chips, of which each chip has a part."""

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor


@pytest.fixture(autouse=True)
def no_mesh_afterwards():
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def whole(x):
    return x.full_tensor().cpu()


@pytest.mark.parametrize("compiled", [False, True])
def test_casts_of_what_all_chips_have_together(compiled):
    """A smallest value that becomes unsigned, and a product of integers that gets the sign of a zero."""

    def function(x):
        product = x.to(torch.int32).prod(dtype=torch.int32)
        return x.amin().to(torch.uint8), x.amax().to(torch.uint8), 1 / product.to(torch.float32)

    x = torch.tensor([2, 1, -2, -1, 0, 3, -3, -4], dtype=torch.int32)
    given = distribute_tensor(x, init_device_mesh("tt", (4,)), [Shard(0)])
    found = (torch.compile(function, backend="tt") if compiled else function)(given)
    torch.testing.assert_close([*map(whole, found)], [*function(x)])


@pytest.mark.parametrize("compiled", [False, True])
def test_norms_over_chips_with_other_values(compiled):
    """Each chip has a part of each norm. A sum of parts is no part of the sum of norms, and other values have signs."""

    def function(x):
        norms = x.norm(dim=0)
        return norms.sum(), torch.cat([norms, x[0] - 9]), torch.stack([norms, -norms]).sum(0)

    x = torch.arange(32.0).reshape(8, 4)
    given = distribute_tensor(x, init_device_mesh("tt", (4,)), [Shard(0)])
    found = (torch.compile(function, backend="tt") if compiled else function)(given)
    torch.testing.assert_close([*map(whole, found)], [*function(x)])

"""Weights that are split over the chips of a mesh: from files, and released after a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import tt_torch
from tt_torch.driver.releasing import release
from tt_torch.errors import ReleasedWeightError, ReleaseError, TensorFileError

X = torch.randn(3, 16)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.relu(self.up(self.norm(x))))


@pytest.fixture(autouse=True)
def no_mesh_afterwards() -> Iterator[None]:
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def plain() -> Net:
    torch.manual_seed(0)
    return Net().eval().requires_grad_(False)


def split(net: Net, mesh: DeviceMesh) -> Net:
    parallelize_module(net, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return net


def row(net: Net) -> Net:
    return split(net, init_device_mesh("tt", (8,)))


def column_of_a_grid(net: Net) -> Net:
    return split(net, init_device_mesh("tt", (2, 4), mesh_dim_names=("dp", "tp"))["tp"])


def both_axes(net: Net) -> Net:
    mesh = init_device_mesh("tt", (2, 4))
    for layer, dim in ((net.up, 0), (net.down, 1)):
        form = distribute_tensor(layer.weight, mesh, [Shard(dim), Shard(dim)])
        layer.weight = nn.Parameter(form, requires_grad=False)
    return net


def whole(x: torch.Tensor) -> torch.Tensor:
    return (x.full_tensor() if isinstance(x, DTensor) else x).cpu()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_file(plain().state_dict(), tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def on_meta(forms: Callable[[Net], Net]) -> Net:
    with torch.device("meta"):
        net = Net().eval().requires_grad_(False)
    return forms(net)


@pytest.mark.parametrize("forms", [row, column_of_a_grid])
def test_parts_go_from_the_file_to_the_chips(path: Path, forms: Callable[[Net], Net]) -> None:
    expected, net = plain()(X), on_meta(forms)
    compiled = tt_torch.compile_model(net, (X,), weights=path)
    assert isinstance(net.up.weight, DTensor)
    for _ in range(2):  # even before the first call, only the file has the values
        with pytest.raises(ReleasedWeightError, match=r"up\.weight, which is in a file"):
            net.up.weight + 1
        torch.testing.assert_close(compiled(X).cpu(), expected)
    for use in (lambda: net.down.weight.full_tensor(), lambda: net(X), lambda: net.down.bias * 2):
        with pytest.raises(ReleasedWeightError, match=r"\.weight|\.bias"):
            use()


def test_a_file_that_does_not_fit_is_an_error_before_anything_is_compiled(path: Path) -> None:
    net = on_meta(row)
    save_file({name: x for name, x in plain().state_dict().items() if name != "down.weight"}, path)
    with pytest.raises(TensorFileError, match=r"down\.weight"):
        tt_torch.compile_model(net, (X,), weights=path)


@pytest.mark.parametrize("forms", [row, column_of_a_grid, both_axes])
def test_split_weights_are_released(forms: Callable[[Net], Net]) -> None:
    net = forms(plain())
    compiled = tt_torch.compile_model(net, (X,))
    with pytest.raises(ReleaseError, match="call the compiled model first"):
        release(net)
    expected = whole(compiled(X))
    torch.testing.assert_close(expected, plain()(X))
    assert release(net) >= sum(p.nbytes for p in plain().parameters() if p.dim() > 1)
    assert torch.equal(whole(compiled(X)), expected)
    with pytest.raises(ReleasedWeightError, match=r"down\.weight"):
        net.down.weight.full_tensor()
    assert release(net) == 0


def test_a_changed_part_is_not_lost() -> None:
    net = row(plain())
    compiled = tt_torch.compile_model(net, (X,))
    compiled(X)
    net.up.weight.mul_(2)
    with pytest.raises(ReleaseError, match=r"up\.weight was changed"):
        release(net)
    changed = plain()
    changed.up.weight.mul_(2)
    torch.testing.assert_close(compiled(X).cpu(), changed(X))

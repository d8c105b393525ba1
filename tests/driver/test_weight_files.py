"""Modules on `meta` that are compiled with the weights of safetensors files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import tt_torch
from tt_torch.errors import TensorFileError
from tt_torch.torch_private.released import ReleasedWeight


class Net(nn.Module):
    """A tied weight, buffers that are in a checkpoint, and a buffer that is not in a checkpoint."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(40, 64), nn.Linear(64, 40, bias=False)
        self.head.weight = self.embed.weight
        self.norm = nn.BatchNorm1d(64)
        self.register_buffer("scale", torch.full((64,), 3.0), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.embed(x)) * self.scale)


def on_meta(dtype: torch.dtype = torch.float32) -> Net:
    with torch.device("meta"):
        net = Net().eval().to(dtype)
    net.scale = torch.full((64,), 3.0, dtype=dtype)
    return net


def real() -> Net:
    torch.manual_seed(0)
    net = Net().eval()
    net.norm.running_mean.normal_()
    return net


def state(net: Net) -> dict[str, torch.Tensor]:
    """The state without the second name of the tied weight, as Transformers saves it."""
    return {name: x for name, x in net.state_dict().items() if name != "head.weight"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_file(state(real()), tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


X = torch.arange(7)


@pytest.mark.parametrize("as_text", [False, True])
def test_weights_go_from_the_file_to_the_device(path: Path, as_text: bool) -> None:
    net = on_meta()
    run = tt_torch.compile_model(net, (X,), weights=str(path) if as_text else path)
    assert net.head.weight is net.embed.weight
    expected = real()(X).detach()
    torch.testing.assert_close(run(X), expected)
    assert isinstance(net.head.weight, ReleasedWeight)
    torch.testing.assert_close(run(X), expected)
    path.unlink()
    torch.testing.assert_close(run(X), expected)


def test_several_files_and_another_dtype(tmp_path: Path) -> None:
    whole = state(real().bfloat16())
    names = sorted(whole)
    paths = [tmp_path / f"{i}.safetensors" for i in range(2)]
    for i, each in enumerate(paths):
        save_file({name: whole[name] for name in names[i::2]}, each)
    run = tt_torch.compile_model(on_meta(torch.bfloat16), (X,), weights=paths)
    torch.testing.assert_close(run(X), real().bfloat16()(X).detach(), rtol=0.05, atol=0.05)
    with pytest.raises(TensorFileError, match=f"0.safetensors: another file has {names[0]}, too"):
        tt_torch.compile_model(on_meta(), (X,), weights=[paths[0], paths[0]])


def changed(net: Net, **changes: torch.Tensor | None) -> dict[str, torch.Tensor]:
    all_ = state(net) | {name.replace("__", "."): x for name, x in changes.items()}
    return {name: x for name, x in all_.items() if x is not None}


WRONG = {
    "missing": ({"embed__weight": None}, "it does not have embed.weight"),
    "many missing": (
        {"norm__weight": None, "norm__bias": None, "norm__running_mean": None, "norm__running_var": None},
        "it does not have norm.weight, norm.bias, norm.running_mean and 1 more",
    ),
    "unexpected": ({"tail__weight": torch.ones(1)}, "it has, and the model does not have, tail.weight"),
    "shape": (
        {"norm__bias": torch.ones(3)},
        r"norm.bias has the shape \(3,\); the model has \(64,\)",
    ),
    "dtype": (
        {"norm__bias": torch.ones(64, dtype=torch.bfloat16)},
        "norm.bias has the dtype torch.bfloat16; the model has torch.float32",
    ),
    "tied": (
        {"head__weight": torch.ones(40, 64)},
        "embed.weight and head.weight are one weight of the model, but have different values",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_files_that_do_not_fit(tmp_path: Path, case: str) -> None:
    changes, message = WRONG[case]
    path, net = tmp_path / "wrong.safetensors", on_meta()
    save_file(changed(real(), **changes), path)
    with pytest.raises(TensorFileError, match=f"wrong.safetensors: {message}"):
        tt_torch.compile_model(net, (X,), weights=path)
    assert all(p.is_meta for p in net.parameters())


def test_files_that_cannot_be_read(tmp_path: Path, path: Path) -> None:
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(path.read_bytes()[:100])
    for each in (damaged, tmp_path / "absent.safetensors"):
        with pytest.raises(TensorFileError, match=f"{each.name}: it cannot be read"):
            tt_torch.compile_model(on_meta(), (X,), weights=each)


def test_a_buffer_that_no_checkpoint_has(path: Path) -> None:
    with torch.device("meta"):
        net = Net().eval()
    with pytest.raises(TensorFileError, match="scale is on meta, and stays so; it is in no checkpoint"):
        tt_torch.compile_model(net, (X,), weights=path)

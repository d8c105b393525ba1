"""The option `kv_cache_dtype`: caches that programs update in place, in block floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.errors import ConfigError
from tt_torch.runtime.block_float import round_to_blocks
from tt_torch.wire.decode import decode
from tt_torch.wire.facts import inputs

OPTIONS: dict[str, Any] = {"kv_cache_dtype": "bfp8_b", "fallback": "error"}


class Attention(nn.Module):
    """Attention to a cache. `fill` writes its first positions, otherwise one position is written."""

    def __init__(self, fill: bool = False, users: int = 1, heads: int = 4, dtype: torch.dtype = torch.bfloat16) -> None:
        super().__init__()
        self.fill = fill
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(users, heads, 64, 32, dtype=dtype))
        self.eval()

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        for cache, new in ((self.keys, k), (self.values, v)):
            if self.fill:
                cache[:, :, : new.shape[2]] = new
            else:
                cache.index_copy_(2, position, new)
        return F.scaled_dot_product_attention(q, self.keys, self.values, enable_gqa=True)


def rounded(x: torch.Tensor) -> torch.Tensor:
    rows = round_to_blocks(x.float().reshape(-1, x.shape[-1]).contiguous().numpy(), "bfp8_b")
    return torch.from_numpy(rows).reshape(x.shape).bfloat16()


def drawn(model: Attention, dtype: torch.dtype = torch.bfloat16) -> list[torch.Tensor]:
    """Queries for twice as many heads, keys and values."""
    users, heads, *_ = model.keys.shape
    length = 32 if model.fill else 1
    sizes = [(users, 2 * heads, length, 32), (users, heads, length, 32), (users, heads, length, 32)]
    return [torch.randn(size).to(dtype) for size in sizes]


def after(model: Attention, k: torch.Tensor, position: int) -> torch.Tensor:
    """The keys of a model after a call."""
    keys = rounded(model.keys)
    if model.fill:
        keys[:, :, : k.shape[2]] = rounded(k)
    else:
        keys[:, :, position : position + 1] = rounded(k)
    return keys


@pytest.mark.parametrize(("fill", "users"), [(False, 1), (False, 3), (True, 1)])
@pytest.mark.parametrize("ahead", [False, True])
@torch.no_grad()
def test_the_cache_has_the_roundings_of_its_type(fill: bool, users: int, ahead: bool) -> None:
    """The values that the program writes, and those that the host has written before, also through `.data`."""
    torch.manual_seed(0)
    model = Attention(fill, users)
    q, k, v = drawn(model)
    run: Callable[..., torch.Tensor] = torch.compile(model, backend="tt", options=OPTIONS)
    if ahead:
        run = tt_torch.compile_model(model, (q, k, v, torch.tensor([0])), CompilerConfig(**OPTIONS))
    for position in range(3):
        model.keys.data[:, :, 9 + position] = torch.arange(32).bfloat16() / 7
        if position != 1:
            model.keys[:, :, 20:30].normal_()
        q, k, v = drawn(model)
        expected = after(model, k, position)
        out = run(q, k, v, torch.tensor([position]))
        assert torch.equal(model.keys, expected)
        want = F.scaled_dot_product_attention(q, model.keys, model.values, enable_gqa=True)
        torch.testing.assert_close(out, want, atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize("options", [{"enable_trace": True}, {"optimization_level": 2}], ids=str)
@torch.no_grad()
def test_the_cache_in_recordings_and_at_level_2(options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model = Attention()
    run = torch.compile(model, backend="tt", options=OPTIONS | options)
    for position in range(4):
        q, k, v = drawn(model)
        expected = after(model, k, position)
        run(q, k, v, torch.tensor([position]))
        assert torch.equal(model.keys, expected)


@torch.no_grad()
def test_each_chip_of_a_mesh_has_its_part_of_the_cache() -> None:
    mesh, model, whole = init_device_mesh("tt", (1, 2)), Attention(), Attention()
    try:
        for name in ("keys", "values"):
            setattr(model, name, distribute_tensor(getattr(model, name), mesh, [Replicate(), Shard(1)]))
        run = torch.compile(model, backend="tt", options=OPTIONS)
        for position in range(2):
            given = drawn(whole)
            whole.keys = after(whole, given[1], position)
            run(*(distribute_tensor(x, mesh, [Replicate(), Shard(1)]) for x in given), torch.tensor([position]))
            assert isinstance(model.keys, DTensor) and torch.equal(model.keys.full_tensor().cpu(), whole.keys)
    finally:
        torch.distributed.destroy_process_group()


@torch.no_grad()
def test_the_device_has_the_type_in_memory() -> None:
    model = Attention()
    args = (*drawn(model), torch.tensor([3]))
    made = [tt_torch.compile_model(model, args, CompilerConfig(kv_cache_dtype=t)).binary for t in (None, "bfp8_b")]
    plain, small = ([x.dtype for x in inputs(decode(binary)["programs"][0])] for binary in made)
    assert plain.count("BFP_BFloat8") == 0 and small.count("BFP_BFloat8") == 2


@torch.no_grad()
def test_a_package_has_the_cache(tmp_path) -> None:
    model = Attention()
    q, k, v = drawn(model)
    tt_torch.compile_model(model, (q, k, v, torch.tensor([3])), CompilerConfig(**OPTIONS)).save(tmp_path / "m.ttpkg")
    out = tt_torch.load(tmp_path / "m.ttpkg")(q, k, v, torch.tensor([3]))
    keys, values = (F.pad(rounded(x), (0, 0, 3, 60)) for x in (k, v))
    torch.testing.assert_close(
        out, F.scaled_dot_product_attention(q, keys, values, enable_gqa=True), atol=2e-2, rtol=2e-2
    )


class Joined(Attention):
    """Reads its cache with an op that has no block floats."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        return super().forward(q, k, v, position), torch.cat([self.keys, self.keys])


@pytest.mark.parametrize(
    ("model", "options", "reason"),
    [
        (Attention(dtype=torch.float32), {}, "a value is Float32 in Tile, and only BFloat16 in tiles changes"),
        (Attention(dtype=torch.float32), {"dtype": "bf16"}, "it updates a copy of the cache, which has another type"),
        (Joined(), {}, "ttnn.concat takes no block floats"),
    ],
)
@torch.no_grad()
def test_other_caches_are_refused_with_the_reason(model: Attention, options: dict[str, Any], reason: str) -> None:
    args = (*drawn(model, model.keys.dtype), torch.tensor([3]))
    with pytest.raises(ConfigError, match=rf"kv_cache_dtype=.* cache of ttnn\.update_cache at .*, because {reason}"):
        tt_torch.compile_model(model, args, CompilerConfig(kv_cache_dtype="bfp8_b", **options))

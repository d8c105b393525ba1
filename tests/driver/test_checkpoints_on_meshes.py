"""`from_pretrained` of Transformers with a plan of tensor parallelism, on a mesh of one process."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.placement_types import _StridedShard
from torch.testing._internal.distributed.fake_pg import FakeStore
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaModel,
    MixtralConfig,
    MixtralForCausalLM,
)
from transformers import core_model_loading as loading
from transformers.distributed import DistributedConfig
from transformers.distributed.mixin import DistributedMixin

import tt_torch
from tt_torch.errors import MeshError, ShardingError
from tt_torch.torch_private.checkpoints import _PartsOfChips
from tt_torch.torch_private.one_process import parts_of

SIZES = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "vocab_size": 128}
HEADS = {"num_attention_heads": 8, "num_key_value_heads": 4}
IDS = torch.randint(128, (2, 8), generator=torch.Generator().manual_seed(3))


@pytest.fixture(autouse=True)
def no_mesh_afterwards() -> Iterator[None]:
    before = loading.DtensorShardOperation, vars(DistributedMixin)["prepare_distribute_model"]
    yield
    if dist.is_initialized():
        dist.destroy_process_group()
    assert before == (loading.DtensorShardOperation, vars(DistributedMixin)["prepare_distribute_model"])


def saved(path: Path, **more: Any) -> LlamaForCausalLM:
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**SIZES, **HEADS, **more)).eval()
    model.save_pretrained(path)
    return model


def whole(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {n: (x.full_tensor() if isinstance(x, DTensor) else x).cpu() for n, x in model.state_dict().items()}


def same_weights(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    left, right = whole(one), whole(other)
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def auto(mesh: DeviceMesh) -> dict[str, Any]:
    return {"tp_plan": "auto", "device_mesh": mesh}


def sized(mesh: DeviceMesh) -> dict[str, Any]:
    return {"distributed_config": DistributedConfig(tp_size=4)}


def as_a_dict(mesh: DeviceMesh) -> dict[str, Any]:
    return {"distributed_config": {"tp_size": 4}, "dtype": torch.float32}


@pytest.mark.parametrize(
    ("arguments", "shape", "tied"), [(auto, (4,), False), (sized, (2, 4), True), (as_a_dict, (4,), True)]
)
def test_a_loaded_model_is_split(tmp_path: Path, arguments: Any, shape: tuple[int, ...], tied: bool) -> None:
    model = saved(tmp_path / "whole", tie_word_embeddings=tied)
    mesh = init_device_mesh("tt", shape, mesh_dim_names=("dp", "tp")[-len(shape) :])
    split = AutoModelForCausalLM.from_pretrained(tmp_path / "whole", **arguments(mesh))
    assert split.model.layers[0].mlp.up_proj.weight.placements == (Shard(0),)
    assert split.model.layers[0].mlp.down_proj.weight.placements == (Shard(1),)
    assert (split.lm_head.weight is split.model.embed_tokens.weight) == tied
    assert same_weights(split, model)
    with torch.no_grad():
        expected = model(IDS).logits
        result = tt_torch.compile_model(split, (IDS,))(IDS).logits
    assert (result.cpu() - expected).abs().max() < 1e-5
    split.save_pretrained(tmp_path / "again")
    dist.destroy_process_group()
    assert same_weights(LlamaForCausalLM.from_pretrained(tmp_path / "again"), model)


def test_the_joined_weights_of_experts_are_split_in_groups(tmp_path: Path) -> None:
    model = MixtralForCausalLM(MixtralConfig(**SIZES, **HEADS)).eval()
    model.save_pretrained(tmp_path)
    init_device_mesh("tt", (4,))
    plan = {"distributed_config": DistributedConfig(tp_size=4), "experts_implementation": "eager"}
    split = AutoModelForCausalLM.from_pretrained(tmp_path, **plan).to("tt")
    assert any(isinstance(p.placements[0], _StridedShard) for p in split.parameters() if isinstance(p, DTensor))
    assert same_weights(split, model)
    with torch.no_grad():
        expected, result = model(IDS).logits, split(IDS.to("tt")).logits
    assert all((chip.cpu() - expected).abs().max() < 1e-5 for chip in parts_of(result) or [result])


def test_a_weight_that_is_not_in_the_file_differs_from_chip_to_chip(tmp_path: Path) -> None:
    LlamaModel(LlamaConfig(**SIZES, **HEADS)).save_pretrained(tmp_path)
    init_device_mesh("tt", (4,))
    split = AutoModelForCausalLM.from_pretrained(tmp_path, distributed_config=DistributedConfig(tp_size=4))
    head = split.lm_head.weight.full_tensor()
    first, *others = head.chunk(4)
    assert 0.019 < head.std() < 0.021 and not any(torch.equal(first, part) for part in others)


@pytest.mark.parametrize("equal", [True, False])
def test_tied_weights_that_are_both_in_the_file(tmp_path: Path, equal: bool) -> None:
    saved(tmp_path, tie_word_embeddings=True)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    tensors["lm_head.weight"][-1, -1] += 0 if equal else 1
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    init_device_mesh("tt", (4,))
    split = AutoModelForCausalLM.from_pretrained(tmp_path, distributed_config=DistributedConfig(tp_size=4))
    assert (split.lm_head.weight is split.model.embed_tokens.weight) == equal
    assert torch.equal(whole(split)["lm_head.weight"], tensors["lm_head.weight"])


@pytest.mark.parametrize(
    ("shape", "config", "words"),
    [
        ((4,), {"tp_size": 2}, "tp_size is 2, and the mesh splits layers over 4 chips"),
        ((4,), {"tp_size": 2, "fsdp_size": 2}, "takes tp_size, and no fsdp_size"),
        ((2, 2), {"tp_size": 2}, 'splits layers over the dimension "tp" of a mesh'),
    ],
)
def test_what_the_mesh_cannot_have_is_refused(tmp_path: Path, shape: Any, config: Any, words: str) -> None:
    saved(tmp_path)
    init_device_mesh("tt", shape)
    with pytest.raises(MeshError, match=words):
        AutoModelForCausalLM.from_pretrained(tmp_path, distributed_config=DistributedConfig(**config))


def test_without_a_plan_a_model_is_whole(tmp_path: Path) -> None:
    model = saved(tmp_path)
    init_device_mesh("tt", (4,))
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert same_weights(loaded, model) and not any(isinstance(p, DTensor) for p in loaded.parameters())


LATER = """
import torch, tt_torch
from torch.distributed.device_mesh import init_device_mesh
init_device_mesh("tt", (4,))
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained({path!r}, tp_plan="auto")
assert model.lm_head.weight.device_mesh.size() == 4
"""


def test_transformers_may_be_imported_after_the_mesh_was_made(tmp_path: Path) -> None:
    saved(tmp_path)
    subprocess.run([sys.executable, "-c", LATER.format(path=str(tmp_path))], check=True)


def cases(seed: int) -> Iterator[tuple[torch.Tensor, torch.Size, Any, int | None]]:
    """Yields a tensor of a file, the shape of its parameter, the placement of this, and the number of the expert."""
    rng = random.Random(seed)
    for _ in range(40):
        shape = [16 * rng.randint(1, 3) for _ in range(rng.randint(1, 3))]
        dim = rng.randrange(len(shape))
        named = rng.choice([dim, dim - len(shape)])
        placement = rng.choice([Replicate(), Shard(named), _StridedShard(dim, split_factor=rng.choice([2, 4]))])
        expert = len(shape) == 3 and (dim or placement == Replicate()) and rng.random() < 0.5
        number = rng.randrange(2 * shape[0]) if expert else None
        yield torch.randn(shape[1:] if expert else shape), torch.Size(shape), placement, number


def of_transformers(source: torch.Tensor, shape: torch.Size, placement: Any, expert: int | None) -> list[torch.Tensor]:
    """The parts that Transformers loads in each of four processes."""
    found = []
    for rank in range(4):
        dist.init_process_group("fake", rank=rank, world_size=4, store=FakeStore())
        mesh = init_device_mesh("cpu", (4,))
        form = SimpleNamespace(device_mesh=mesh, placements=(placement,), ndim=len(shape), shape=shape)
        found.append(loading.DtensorShardOperation(form).shard_tensor(source, tensor_idx=expert))
        dist.destroy_process_group()
    return found


@pytest.mark.parametrize("seed", range(3))
def test_chips_get_the_parts_that_processes_would_load(seed: int) -> None:
    drawn = list(cases(seed))
    expected = [of_transformers(*case) for case in drawn]
    mesh = init_device_mesh("tt", (4,))
    for (source, shape, placement, expert), parts in zip(drawn, expected, strict=True):
        form = distribute_tensor(torch.empty(shape, device="meta"), mesh, [placement], src_data_rank=None)
        loaded = _PartsOfChips(form).shard_tensor(source, tensor_idx=expert, device="cpu", dtype=torch.float32)
        got = parts_of(loaded) or [loaded] * 4
        assert all(map(torch.equal, got, parts)), (shape, placement, expert)


def test_experts_are_not_given_to_single_chips() -> None:
    form = distribute_tensor(torch.empty(4, 8, 8, device="meta"), init_device_mesh("tt", (4,)), [Shard(0)])
    with pytest.raises(ShardingError, match="each chip would have other experts"):
        _PartsOfChips(form).shard_tensor(torch.ones(8, 8), tensor_idx=1)

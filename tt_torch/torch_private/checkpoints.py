"""`from_pretrained(path, distributed_config=DistributedConfig(tp_size=4))` of Transformers on a mesh of one process.

Transformers makes a process load the part that one chip has of each weight. A process with several chips must load the
parts of all its chips. For this, four names of Transformers 5.23.0 are replaced while the mesh is there: `_REPLACED`.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Placement, Replicate, Shard

from tt_torch.errors import MeshError, ShardingError
from tt_torch.torch_private.chips import RUNNING, of_parts, parts_of
from tt_torch.torch_private.split_weights import parts_by_placement
from tt_torch.transformers_compile import when_imported

_OTHERS = ("pp_size", "dp_replicate_size", "fsdp_size", "ep_size")


class _Meshes:
    """The meshes of a model, in the place of Transformers' `TransformersDeviceMesh`: all its layers have one mesh."""

    def __init__(self, mesh: DeviceMesh) -> None:
        self._mesh = mesh

    def get_mesh(self, dims: object) -> DeviceMesh:
        return self._mesh


class _PartsOfChips:
    """Reads the parts of a weight for the chips of this process, in the place of `DtensorShardOperation`."""

    def __init__(self, form: DTensor) -> None:
        self._form = form

    def shard_tensor(self, source: Any, tensor_idx: int | None = None, device: Any = None, dtype: Any = None) -> Any:
        """The parts of a tensor of the file. With `tensor_idx`, it may be the weight of one expert of many."""
        whole = source[...]
        one_of_many = tensor_idx is not None and whole.ndim == self._form.ndim - 1
        placements = [_of_expert(p, self._form) if one_of_many else p for p in self._form.placements]
        parts = parts_by_placement(whole, self._form, placements)
        if parts is None:
            raise MeshError(f"{self._form.device_mesh} is a part of a mesh, and its dimensions have no names there")
        made = [part.to(device=device, dtype=dtype) for part in parts]
        return of_parts(made) if len(made) > 1 else made[0]


def _of_expert(placement: Placement, form: DTensor) -> Placement:
    """The placement of the weight of one expert, for the placement of the weights of all of them.

    Two weights of an expert that lie beside each other in `form`, as `_StridedShard` says, are two tensors in the file.
    """
    if placement.is_replicate():
        return Replicate()
    dim: int = getattr(placement, "dim") % form.ndim  # noqa: B009  # the base class has no `dim`
    if dim == 0:
        raise ShardingError(form.shape, "each chip would have other experts; split the weights of each expert")
    return Shard(dim - 1)


def _tensor_parallel_mesh(mesh: DeviceMesh | None) -> DeviceMesh:
    """The dimension of the mesh over which Transformers splits layers: the one that is called "tp", or the only one."""
    if mesh is not None and "tp" in (mesh.mesh_dim_names or ()):
        return mesh["tp"]
    if mesh is not None and mesh.ndim == 1:
        return mesh
    raise MeshError('from_pretrained splits layers over the dimension "tp" of a mesh, and no mesh has one: '
                    'init_device_mesh("tt", (2, 4), mesh_dim_names=("dp", "tp"))')  # fmt: skip


def _for_our_mesh(of: Any) -> Any:
    """`prepare_distribute_model`, which otherwise makes a mesh of processes, and asks for the package `accelerate`."""

    def prepare_distribute_model(cls: Any, distributed_config: Any, device_map: Any = None) -> Any:
        from transformers.distributed import DistributedConfig  # Transformers is imported when this is called

        config = distributed_config
        if isinstance(config, dict):
            config = DistributedConfig.from_dict(config)
        others = {name: getattr(config, name) for name in _OTHERS if config is not None and getattr(config, name) > 1}
        if others:
            raise MeshError(f"from_pretrained on a mesh of chips takes tp_size, and no {', '.join(others)}")
        if config is None or (config.tp_plan is None and config.tp_size == 1) or device_map is not None:
            return of.__get__(None, cls)(config, device_map=device_map)
        mesh = _tensor_parallel_mesh(RUNNING[-1].mesh)
        # Without a `tp_size`, Transformers takes the number of processes.
        derived = config.tp_plan is not None and config.tp_size == int(os.environ.get("WORLD_SIZE", "1"))
        if config.tp_size != mesh.size() and not derived:
            raise MeshError(f"tp_size is {config.tp_size}, and the mesh splits layers over {mesh.size()} chips")
        return dataclasses.replace(config, tp_size=mesh.size()), None, _Meshes(mesh)

    return classmethod(prepare_distribute_model)


def _with_memory_per_chip(of: Callable[..., DTensor]) -> Callable[..., DTensor]:
    """`_dtensor_from_local_like`: a weight that the file lacks gets memory on each chip before it is initialized."""

    def _dtensor_from_local_like(local: torch.Tensor, form: DTensor) -> DTensor:
        chips = parts_of(form._local_tensor)
        if parts_of(local) is None and chips is not None:
            local = of_parts([torch.empty_like(local) for _ in chips])
        return of(local, form)

    return _dtensor_from_local_like


def _of_whole_tensors(of: Callable[..., bool]) -> Callable[..., bool]:
    """`_tied_params_are_equal`: it would compare parts, and add up one number per process."""

    def _tied_params_are_equal(*tied: torch.Tensor) -> bool:
        return of(*(x.full_tensor() if isinstance(x, DTensor) else x for x in tied))

    return _tied_params_are_equal


_REPLACED: Sequence[tuple[str, str | None, str, Callable[[Any], Any]]] = (
    ("transformers.distributed.mixin", "DistributedMixin", "prepare_distribute_model", _for_our_mesh),
    ("transformers.core_model_loading", None, "DtensorShardOperation", lambda _: _PartsOfChips),
    ("transformers.modeling_utils", None, "_dtensor_from_local_like", _with_memory_per_chip),
    ("transformers.modeling_utils", None, "_tied_params_are_equal", _of_whole_tensors),
)


def put_in() -> Callable[[], None]:
    """Replaces the names now, or when Transformers is imported. Returns a function that undoes this."""
    undo: list[Callable[[], None]] = []

    def replace(owner: str | None, name: str, wrapped: Callable[[Any], Any], module: ModuleType) -> None:
        place = getattr(module, owner) if owner else module
        before = vars(place)[name]
        setattr(place, name, wrapped(before))
        undo.append(functools.partial(setattr, place, name, before))

    for path, owner, name, wrapped in _REPLACED:
        undo.append(when_imported(path, functools.partial(replace, owner, name, wrapped)))

    def take_out() -> None:
        for step in undo:
            step()

    return take_out

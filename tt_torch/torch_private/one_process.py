"""All chips of a mesh in one process: the values that DTensor has on each of them, and what DeviceMesh sets up.

Importing this module imports torch.distributed.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch._functorch.aot_autograd  # 2.13.0: without it the next but one import would be circular
import torch.distributed as dist
import torch.distributed._ops.device_mesh  # 2.13.0: without it COORDINATE is not known
from torch._guards import TracingContext  # 2.13.0: for of_first_chip
from torch._subclasses import meta_utils  # 2.13.0: for _and_of_the_same_parts
from torch.distributed import (
    _local_tensor,  # 2.13.0: for _of_all_chips_or_one
    config,
    distributed_c10d,
)
from torch.distributed._local_tensor import (
    _PATCHED_DEVICE_MESH_METHODS,  # 2.13.0: the same
    LocalTensor,  # 2.13.0: without it a DTensor would have the values of one chip only
    _LocalDeviceMesh,  # 2.13.0: for _of_all_chips_or_one
)
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta  # 2.13.0: for of_first_chip
from torch.distributed.tensor.debug import _clear_sharding_prop_cache  # 2.13.0: for as_one_chip
from torch.distributed.tensor.placement_types import (
    Partial,
    Replicate,
    Shard,
    _StridedShard,  # 2.13.0: for _split_here
)
from torch.testing._internal.distributed.fake_pg import (
    FakeStore,  # 2.13.0: without it a process group would wait for other processes
)

from tt_torch.errors import CollectiveError, MeshError
from tt_torch.torch_private import (
    checkpoints,
    rank_states,
    result_gradients,
    sharded_graphs,
    sharded_sums,
    shardings,
    strided_parts,
)
from tt_torch.torch_private.chips import (
    EXCHANGES,
    MIXED,
    RUNNING,
    WAITS,
    Chips,
    chips,
    hosts,
    of_parts,
    of_whole,
    parts_of,
    require_equal_parts,
    require_equal_parts_of,
    running,
    same,
)
from tt_torch.torch_private.distributed import set_one_process
from tt_torch.torch_private.hosts import Hosts, meet
from tt_torch.torch_private.marks import part_of_graphs
from tt_torch.torch_private.moved_views import memory_of, written_with
from tt_torch.torch_private.ops import schema
from tt_torch.torch_private.sharded_norms import local
from tt_torch.torch_private.split_weights import deferred, distributed, parts_of_chips, sharding_of
from tt_torch.torch_private.tensors import FakeTensor, without_modes
from tt_torch.torch_private.trees import tree_leaves

__all__ = [
    "MIXED",
    "DTensor",
    "DeviceMesh",
    "LocalTensor",
    "chips",
    "deferred",
    "distributed",
    "hosts",
    "memory_of",
    "of_parts",
    "of_whole",
    "parts_of",
    "parts_of_chips",
    "running",
    "sharding_of",
    "written_with",
]  # fmt: skip

# 2.13.0: without it a program would take the place of the first chip in its row for that of all chips.
COORDINATE = torch.ops.device_mesh._runtime_compute_coordinate_on_dim.default
_FORM = "dim sym_size sym_stride sym_storage_offset sym_numel is_contiguous is_non_overlapping_and_dense"
FORMS = [getattr(torch.ops.aten, name).default for name in _FORM.split()]
_before: list[tuple[Any, str, Any]] = []  # what the patches have replaced
_undo: list[Callable[[], None]] = []


# 2.13.0: without it a captured graph would have the numbers of the first chip as constants. Without its end, eager ops
# would find plans of the graph, whose meshes are stand-ins: each chip would then split tensors as the first one does.
@contextmanager
def as_one_chip() -> Iterator[None]:
    """A context in which DTensor traces what any chip does, as seen from the first chip."""
    fake = TracingContext.get().fake_mode
    assert fake and fake.shape_env, "the place of a chip in its row needs a symbol"  # see mode_of_a_chip
    with without_modes(), RUNNING[-1].disable(), config.patch(compile_on_one_rank=True):
        try:
            yield
        finally:
            _clear_sharding_prop_cache()


def whole_mesh(x: DTensor) -> tuple[int, ...]:
    """The shape of the mesh of which the mesh of a DTensor is a part."""
    return tuple(x.device_mesh._get_root_mesh().shape)


def axes_of(x: object) -> frozenset[int]:
    """The axes of the mesh, rows (0) and columns (1), along which an example of an input differs from chip to chip."""
    if isinstance(x, LocalTensor):
        return frozenset((0, 1))
    if not isinstance(x, DTensor):
        return frozenset()
    mesh, whole = x.device_mesh, x.device_mesh._get_root_mesh()
    if mesh is whole and mesh.ndim <= 2:
        varying = {dim + 2 - mesh.ndim for dim, placement in enumerate(x.placements) if not placement.is_replicate()}
    elif all(placement.is_replicate() for placement in x.placements):
        varying = set()
    else:
        names = dict.fromkeys(whole.mesh_dim_names or ())
        at = {name: dim + 2 - whole.ndim for dim, name in enumerate(names)}
        said = zip(mesh.mesh_dim_names or (), x.placements, strict=True)
        varying = {axis for name, p in said if not p.is_replicate() for axis in ([at[name]] if name in at else [0, 1])}
    return frozenset(varying)


def of_first_chip(x: Any) -> Any:
    """An example of an input as the first chip has it. Symbolic sizes become numbers, on which Dynamo sets guards,
    because each program is for one shape."""
    if isinstance(x, torch.SymInt):
        return int(x)
    if isinstance(x, DTensor):
        require_equal_parts_of(x)
        meta = TensorMeta(torch.Size(map(int, x.shape)), tuple(map(int, x.stride())), x.dtype)
        spec = DTensorSpec(x._spec.mesh, x._spec.placements, tensor_meta=meta)
        return DTensor(_fixed(of_first_chip(x._local_tensor)), spec, requires_grad=x.requires_grad)
    if isinstance(x, LocalTensor):
        first, *_ = parts_of(x) or [x]
        return _fixed(first).requires_grad_(x.requires_grad)
    return _fixed(x) if isinstance(x, torch.Tensor) else x


def without_values(x: DTensor) -> DTensor:
    """A DTensor of the same form on the device of its mesh. All chips share memory to which nobody writes."""
    first, *others = parts_of(x._local_tensor) or [x._local_tensor]
    memory = torch.empty_strided(first.shape, first.stride(), dtype=x.dtype, device=x.device_mesh.device_type)
    return DTensor(of_parts([memory] * (1 + len(others))) if others else memory, x._spec, requires_grad=x.requires_grad)


def first_part(x: Any, count: int) -> torch.Tensor:
    """An example of the first of `count` parts of an input along dimension 0."""
    whole = _fixed(x)
    sizes = [whole.shape[0] // count, *whole.shape[1:]]
    with whole.fake_mode:
        part = torch.empty_strided(sizes, whole.stride(), dtype=x.dtype, device=x.device)
    return part.requires_grad_(x.requires_grad)


def on_mesh(x: torch.Tensor, mesh: DeviceMesh, split: bool) -> DTensor:
    """A tensor of one chip as a part of a DTensor on a row of chips, split along dimension 0 or the same on all."""
    return DTensor.from_local(x, mesh, [Shard(0) if split else Replicate()], run_check=False)


def whole(x: Any) -> Any:
    """The whole tensor of a DTensor, which all chips get. Other values stay as they are."""
    return x.full_tensor() if isinstance(x, DTensor) else x


def _fixed(x: Any) -> Any:
    """A fake tensor whose sizes are numbers."""
    if not isinstance(x, FakeTensor):
        fixed = TracingContext.get().fake_mode.from_tensor(x.detach(), static_shapes=True)
        return fixed.requires_grad_(x.requires_grad)
    if any(isinstance(n, torch.SymInt) for n in (*x.shape, *x.stride())):
        sizes, strides = list(map(int, x.shape)), list(map(int, x.stride()))
        with x.fake_mode:
            fixed = torch.empty_strided(sizes, strides, dtype=x.dtype, device=x.device)
        return fixed.requires_grad_(x.requires_grad)
    return x


# 2.13.0: without it `distribute_tensor` would send the parts to other processes, of which there are none.
def _split_here(of: Any) -> Callable[..., torch.Tensor]:
    def _shard_tensor(
        self: Any, tensor: torch.Tensor, mesh: DeviceMesh, mesh_dim: int, src_data_rank: int | None = 0
    ) -> torch.Tensor:
        require_equal_parts(tensor.shape, self.dim, mesh.size(mesh_dim))
        RUNNING[-1].require_same([tensor], "a tensor that is split over the chips")
        return of(self, tensor, mesh, mesh_dim, None)

    return _shard_tensor


class _OfAll(torch.autograd.Function):
    """The one value of a tensor that has the same value on each chip. Each chip gets the gradient of the whole."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        first, *others = parts_of(x) or [x]
        known = not isinstance(first, FakeTensor)  # a graph that is captured has no values
        if known and not all(same(first, other) for other in others if other is not first):
            raise CollectiveError("full_tensor() gathered other values on each chip")
        RUNNING[-1].require_same([first], "the value of full_tensor()")
        return first.view_as(first)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0]


# 2.13.0: without it `full_tensor` would return a tensor with a value per chip, all of them equal.
def _one_value(of: Any) -> Callable[..., torch.Tensor]:
    @functools.wraps(of)
    def full_tensor(self: DTensor, **named: Any) -> torch.Tensor:
        x = of(self, **named)
        if isinstance(x, LocalTensor):
            return _OfAll.apply(x)  # type: ignore[no-untyped-call]
        RUNNING[-1].require_same([x], "the value of full_tensor()")
        return x

    return full_tensor


# 2.13.0: without it the mode would outlive `destroy_process_group`.
def _end_before(of: Any) -> Callable[[], None]:
    def _unregister_all_process_groups() -> None:
        _end()
        of()

    return _unregister_all_process_groups


# 2.13.0: without it what PyTorch keeps of a mesh would still ask for the coordinates of all chips when it traces one.
def _of_all_chips_or_one(of: Any) -> Callable[..., Any]:
    of_one = getattr(DeviceMesh, of.__name__)

    @functools.wraps(of)
    def coordinate(self: Any, *args: Any) -> Any:
        mode = _local_tensor.enabled_local_tensor_mode()
        if mode is None:
            return of_one(self, *args)
        if isinstance(mode, Chips):
            mode.forget_another(self)
        with without_modes():
            return of(self, *args)

    part_of_graphs(coordinate)
    return coordinate


# 2.13.0: without it collectives in a graph that is captured would leave out groups with chips of other processes, and a
# graph with two inputs in one memory could not be captured: while Dynamo puts their fake tensors in one memory, no mode
# answers for their sizes.
def _exchanged(of: Any) -> Any:
    def __torch_dispatch__(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        mode = running()
        if func in FORMS:
            first, *_ = parts_of(args[0]) or args
            return func(first, *args[1:])
        if mode and mode.hosts and func.namespace in EXCHANGES and schema(func).name not in WAITS:
            given = [x for x in tree_leaves((args, kwargs or {})) if isinstance(x, LocalTensor)]
            if all(len(x._local_tensors) == len(mode.hosts.own) for x in given):
                return mode.exchange(func, args, kwargs or {})
        return of(func, types, args, kwargs)

    return classmethod(__torch_dispatch__)


# 2.13.0: without it a tensor of integers that all chips have, beside a sum over the chips, would become floats, because
# each chip would have a quotient of it.
def _on_one_chip(of: Any) -> Any:
    def _partition_value(self: Any, tensor: torch.Tensor, mesh: DeviceMesh, mesh_dim: int) -> Any:
        if self.reduce_op != "sum" or tensor.dtype.is_floating_point or tensor.dtype.is_complex:
            return of(self, tensor, mesh, mesh_dim)
        first = torch.zeros(mesh.size(mesh_dim), dtype=tensor.dtype, device=tensor.device)
        first[0] = 1
        placements = [Shard(0) if axis == mesh_dim else Replicate() for axis in range(mesh.ndim)]
        return tensor * local(first, mesh, placements).squeeze(0)

    return _partition_value


# 2.13.0: without it a compiled step of an optimizer would end in an AssertionError for a parameter that all chips have
# and whose gradient is a sum over the chips: one is a plain tensor inside, and the other has a value per chip.
def _and_of_the_same_parts(of: Any) -> Callable[..., bool]:
    def fit(context: Any, x: Any) -> bool:
        inner, parts = getattr(context, "inner_contexts", None), getattr(x, "attrs", None)
        if inner is None or parts is None:
            return inner is parts
        return inner.keys() == parts.keys() and all(fit(inner[name], parts[name]) for name in parts)

    return lambda context, gradient: of(context, gradient) and fit(context, gradient)


_PATCHES: Sequence[tuple[Any, str, Callable[[Any], Any]]] = (
    (Shard, "_shard_tensor", _split_here),
    (_StridedShard, "_shard_tensor", _split_here),
    (Partial, "_partition_value", _on_one_chip),
    (DTensor, "full_tensor", _one_value),
    (meta_utils, "_grad_context_compatible", _and_of_the_same_parts),
    (distributed_c10d, "_unregister_all_process_groups", _end_before),
    (LocalTensor, "__torch_dispatch__", _exchanged),
    *rank_states.PATCHES,
    *result_gradients.PATCHES,
    *sharded_graphs.PATCHES,
    *sharded_sums.PATCHES,
    *shardings.PATCHES,
    *strided_parts.PATCHES,
    *((_LocalDeviceMesh, name, _of_all_chips_or_one) for name in _PATCHED_DEVICE_MESH_METHODS),
)


def begin_with_others(shape: Sequence[int]) -> None:
    """Gives this process a part of the chips of a mesh, which it shares with the processes of a launcher.

    Raises what `meet` raises.
    """
    begin(math.prod(shape), meet(shape))


def begin(chips: int, hosts: Hosts | None = None) -> None:
    """Gives this process a mesh with this number of chips, until `torch.distributed.destroy_process_group()`."""
    _undo.extend((shardings.put_in(), checkpoints.put_in()))
    _before.extend((place, name, vars(place)[name]) for place, name, _ in _PATCHES)
    for place, name, wrapped in _PATCHES:
        setattr(place, name, wrapped(getattr(place, name)))
    mode = Chips(chips, hosts)
    mode.__enter__()
    RUNNING.append(mode)
    hook = sys.excepthook
    try:
        dist.init_process_group("tt", rank=hosts.own[0] if hosts else 0, world_size=chips, store=FakeStore())
    except BaseException:
        _end()
        raise
    finally:
        sys.excepthook = hook  # PyTorch's hook would write "[rank0]:" before each line of a traceback


@contextmanager
def row_of(count: int, kind: str) -> Iterator[DeviceMesh]:
    """A row of all chips of this process. If the process had no chips before, it has them only in this context.

    `kind` is "tt", or "cpu" for tensors that are there before they are copied to the chips. Raises MeshError if the
    process has another number of chips, or if `torch.distributed` has other processes.
    """
    if not RUNNING and not dist.is_initialized():
        begin(count)
        try:
            yield init_device_mesh(kind, (count,))
        finally:
            dist.destroy_process_group()
    elif not RUNNING or chips() != count:
        has = f"this process has {chips()} chips" if RUNNING else "torch.distributed runs with other processes"
        raise MeshError(f"a program for {count} chips cannot be compiled, because {has}")
    else:
        yield init_device_mesh(kind, (count,))


def _end() -> None:
    while RUNNING:
        mode = RUNNING.pop()
        mode.__exit__(None, None, None)
        if mode.hosts:
            mode.hosts.close()
    for place, name, old in reversed(_before):
        setattr(place, name, old)
    _before.clear()
    while _undo:
        _undo.pop()()


set_one_process(sys.modules[__name__])

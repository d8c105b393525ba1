"""Batch norm and the gradients of group norm for DTensors, while this process has a mesh of chips.

PyTorch's rule for batch norm splits channels. A split batch is then gathered before each batch norm, and the new
running statistics are written to parts that nobody reads again. Here, the batch stays split. In training, the chips
exchange sums per channel. So the statistics are taken over the whole batch, as on one chip.

Importing this module imports torch.distributed.tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor.placement_types import Placement

from tt_torch.torch_private.marks import part_of_graphs
from tt_torch.torch_private.ops import OpOverload, schema

aten = torch.ops.aten
BATCH, CHANNELS = 0, 1
Handler: TypeAlias = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
HANDLERS: dict[OpOverload, Handler] = {}


def handles(*ops: OpOverload) -> Callable[[Handler], Handler]:
    """Registers a function that computes an op of DTensors, instead of PyTorch's rule."""

    def register(function: Handler) -> Handler:
        part_of_graphs(function)  # Dynamo would compile what runs after a graph break
        HANDLERS.update(dict.fromkeys(ops, torch.no_grad()(function)))  # DTensor calls it below autograd
        return function

    return register


def named(op: OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an op by name. An argument that is not given is None."""
    names = [argument.name for argument in schema(op).arguments]
    return dict.fromkeys(names) | dict(zip(names, args, strict=False)) | kwargs


def local(x: torch.Tensor, mesh: DeviceMesh, placements: Sequence[Placement]) -> torch.Tensor:
    """A chip's part of a tensor after it was split in this way. A plain tensor is a tensor that all chips have."""
    return as_dtensor(x, mesh).redistribute(mesh, placements).to_local()


def as_dtensor(x: torch.Tensor, mesh: DeviceMesh) -> DTensor:
    if isinstance(x, DTensor):
        return x
    return DTensor.from_local(x, mesh, [Replicate()] * mesh.ndim, run_check=False)


def _first_mesh(args: Sequence[Any]) -> DeviceMesh:
    return next(x.device_mesh for x in args if isinstance(x, DTensor))


def _whole(x: torch.Tensor, mesh: DeviceMesh) -> torch.Tensor:
    """A tensor per channel, which each chip gets whole."""
    return as_dtensor(x, mesh).redistribute(mesh, [Replicate()] * mesh.ndim)


def _per_channel(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return x.reshape([1, -1, *[1] * (like.dim() - 2)])


def _dims(x: torch.Tensor) -> list[int]:
    return [dim for dim in range(x.dim()) if dim != CHANNELS]


def _kept(x: torch.Tensor, mesh: DeviceMesh) -> DTensor:
    """A tensor whose batch may be split; other splits are gathered."""
    x = as_dtensor(x, mesh)
    return x.redistribute(mesh, [p if p == Shard(BATCH) else Replicate() for p in x.placements])


@handles(
    aten.native_batch_norm.default,
    aten._native_batch_norm_legit.default,
    aten._native_batch_norm_legit.no_stats,
    aten._native_batch_norm_legit_no_training.default,
    aten._batch_norm_with_update.default,
)
def _batch_norm(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    a, mesh = named(op, args, kwargs), _first_mesh(args)
    trains = op is aten._batch_norm_with_update.default or a.get("training", False)
    results = _trained(a, mesh) if trains else _inferred(a, mesh)
    if len(schema(op).returns) == len(results):
        return results
    return (*results, as_dtensor(torch.empty(0, dtype=torch.uint8, device=args[0].device), mesh))


def _inferred(a: dict[str, Any], mesh: DeviceMesh) -> tuple[torch.Tensor, ...]:
    """Runs the op itself on each chip. With given statistics, each sample and each channel is independent."""
    x = as_dtensor(a["input"], mesh)
    placements = [p if p in (Shard(BATCH), Shard(CHANNELS)) else Replicate() for p in x.placements]
    of_channels = [Shard(0) if p == Shard(CHANNELS) else Replicate() for p in placements]
    names = ("weight", "bias", "running_mean", "running_var")
    given = [None if a[name] is None else local(a[name], mesh, of_channels) for name in names]
    call = aten._native_batch_norm_legit_no_training.default
    result, *stats = call(local(x, mesh, placements), *given, a["momentum"], a["eps"])
    made = DTensor.from_local(result, mesh, placements, run_check=False)
    return made, *(DTensor.from_local(x, mesh, [Replicate()] * mesh.ndim, run_check=False) for x in stats)


def _trained(a: dict[str, Any], mesh: DeviceMesh) -> tuple[torch.Tensor, ...]:
    """Takes the mean of the whole batch, then the mean square distance from it. The chips exchange two sums per
    channel. The sums are in float32 or wider."""
    x = _kept(a["input"], mesh)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    mean = _whole(wide.mean(_dims(x)), mesh)
    centred = wide - _per_channel(mean, x)
    variance = _whole((centred * centred).mean(_dims(x)), mesh)
    count, momentum = x.numel() // x.shape[CHANNELS], a["momentum"]
    unbiased = variance * (count / (count - 1)) if count > 1 else variance * float("nan")
    for name, new in (("running_mean", mean), ("running_var", unbiased)):
        old = a.get(name)
        if old is not None:
            mixed = (as_dtensor(old, mesh) * (1 - momentum) + new * momentum).to(old.dtype)
            old.copy_(mixed if isinstance(old, DTensor) else mixed.to_local())
    invstd = torch.rsqrt(variance + a["eps"])
    result = centred * _per_channel(invstd, x)
    for combine, name in ((torch.mul, "weight"), (torch.add, "bias")):
        if a[name] is not None:
            result = combine(result, _per_channel(_whole(a[name], mesh), x))
    return result.to(x.dtype), mean, invstd


@handles(aten.native_batch_norm_backward.default, aten.batch_norm_backward.default)
def _batch_norm_gradients(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The gradients of y = (x - mean) * invstd * weight + bias. In training, mean and invstd depend on x, too."""
    a, mesh = named(op, args, kwargs), _first_mesh(args)
    trains, x = a.get("train", a.get("update")), _kept(a["input"], mesh)
    kind = torch.promote_types(x.dtype, torch.float32)
    g = _kept(a["grad_out"], mesh).to(kind)
    mean, invstd = _statistics(a, mesh) if trains else _running_statistics(a, mesh)
    normal = (x.to(kind) - _per_channel(mean, x)) * _per_channel(invstd, x)
    of_bias, of_weight = _whole(g.sum(_dims(x)), mesh), _whole((g * normal).sum(_dims(x)), mesh)
    inner, scale, of_params = g, invstd, kind
    if trains:
        count = x.numel() // x.shape[CHANNELS]
        inner = g - _per_channel(of_bias / count, x) - normal * _per_channel(of_weight / count, x)
    if a["weight"] is not None:
        scale, of_params = invstd * _whole(a["weight"], mesh), a["weight"].dtype
    found = [(inner * _per_channel(scale, x)).to(x.dtype), of_weight.to(of_params), of_bias.to(of_params)]
    return tuple(value if asked else None for value, asked in zip(found, a["output_mask"], strict=True))


def _statistics(a: dict[str, Any], mesh: DeviceMesh) -> tuple[torch.Tensor, torch.Tensor]:
    """The mean and the reciprocal deviation that the forward pass has saved."""
    saved = a["save_invstd"] if "save_invstd" in a else a["save_var"]
    return _whole(a["save_mean"], mesh), _whole(saved, mesh)


def _running_statistics(a: dict[str, Any], mesh: DeviceMesh) -> tuple[torch.Tensor, torch.Tensor]:
    return _whole(a["running_mean"], mesh), torch.rsqrt(_whole(a["running_var"], mesh) + a["eps"])


@handles(aten.native_group_norm_backward.default)
def _group_norm_gradients(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Samples are independent; the gradients of weight and bias are sums over all of them."""
    a, mesh = named(op, args, kwargs), _first_mesh(args)
    placements = [p if p == Shard(BATCH) else Replicate() for p in as_dtensor(a["input"], mesh).placements]
    x, g, mean, rstd = (local(a[name], mesh, placements) for name in ("input", "grad_out", "mean", "rstd"))
    weight = None if a["weight"] is None else local(a["weight"], mesh, [Replicate()] * mesh.ndim)
    results = op(g, x, mean, rstd, weight, x.shape[0], a["C"], a["HxW"], a["group"], a["output_mask"])
    sums = [Partial("sum") if p == Shard(BATCH) else Replicate() for p in placements]
    splits: Sequence[Sequence[Placement]] = (placements, sums, sums)
    made: list[DTensor | None] = []
    for value, split in zip(results, splits, strict=True):
        made.append(None if value is None else DTensor.from_local(value, mesh, split, run_check=False))
    return tuple(made)

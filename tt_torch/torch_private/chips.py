"""The values that the chips of this process have in eager PyTorch, and how chips exchange them.

Importing this module imports torch.distributed.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, TypeGuard

import torch
import torch._functorch.aot_autograd  # 2.13.0: without it the import of _local_tensor would be circular
from torch.distributed import _local_tensor  # 2.13.0: for Chips
from torch.distributed._local_tensor import (
    LocalTensor,  # 2.13.0: without it a DTensor would have the values of one chip only
    LocalTensorMode,  # 2.13.0: without it collectives of one process would do nothing
)
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from tt_torch.errors import CollectiveError, ShardingError
from tt_torch.torch_private.hosts import Hosts, digest
from tt_torch.torch_private.marks import part_of_graphs
from tt_torch.torch_private.ops import HigherOrderOperator, is_random, schema, written
from tt_torch.torch_private.released import require_values
from tt_torch.torch_private.tensors import FakeTensor
from tt_torch.torch_private.trees import tree_leaves, tree_map

# Namespaces of ops that exchange values between chips.
EXCHANGES = ("c10d", "_c10d_functional", "_c10d_functional_autograd", "_dtensor")
WAITS = ("_c10d_functional::wait_tensor", "_c10d_functional::_wrap_tensor_autograd")  # they exchange nothing
# Collectives that change nothing if all chips have the same values.
NOTHING_TO_DO = ("c10d::broadcast_", "c10d::barrier", "c10d::monitored_barrier_")
MIXED = "DTensor.from_local() says how the values of the chips make one tensor"
DRAW_WHOLE = "a DTensor draws the numbers of its whole tensor"
RUNNING: list[Chips] = []  # the mode, while this process has chips of a mesh


class Chips(LocalTensorMode):
    """PyTorch's mode for values that differ from chip to chip. A plain tensor is a tensor that all chips have.

    It differs from its base class: new tensors are plain, random numbers are the same on all chips, and a
    collective of a plain tensor exchanges values. If several processes share the mesh, each of them has the values of
    its own chips. Before a collective, a process gets the values of all other chips. It then computes the collective
    for all chips.
    """

    supports_higher_order_operators = True  # `while_loop` and others of plain tensors, in a captured graph

    def __init__(self, ranks: int, hosts: Hosts | None = None) -> None:
        super().__init__(frozenset(hosts.own) if hosts else ranks)
        self.count, self.hosts = ranks, hosts
        self.mesh: DeviceMesh | None = None  # the mesh of all chips that was made last
        self._asked: weakref.WeakValueDictionary[int, DeviceMesh] = weakref.WeakValueDictionary()

    def __enter__(self) -> Chips:
        super().__enter__()
        self._per_rank_rng_states.clear()  # otherwise each op would set the generators back
        return self

    def _patch_random_functions(self) -> None: ...

    def _unpatch_random_functions(self) -> None: ...

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if isinstance(func, HigherOrderOperator):
            return func(*args, **(kwargs or {}))
        leaves = tree_leaves((args, kwargs or {}))
        varies = any(isinstance(x, LocalTensor) for x in leaves)
        require_values(func, [x for leaf in leaves for x in (parts_of(leaf) or [leaf])])
        if varies and any(isinstance(x, DTensor) for x in leaves):
            raise CollectiveError(f"{func} of a DTensor and a tensor with a value per chip", MIXED)
        if varies and schema(func).is_mutable and not self._disable and _writes_plain(func, args, kwargs or {}):
            return self._write_once(func, types, args, kwargs or {})
        if varies and is_random(func) and not (self._disable or _of_a_graph(leaves)):
            return self._drawn(func, args, kwargs or {})
        is_exchange = func.namespace in EXCHANGES and schema(func).name not in WAITS
        if varies and is_exchange and not self._disable and self.hosts:
            return self.exchange(func, args, kwargs or {})
        if self._disable or func.namespace == "device_mesh" or varies:
            made = super().__torch_dispatch__(func, types, args, kwargs)
            if varies and schema(func)._is_view_op():
                _keep_alive(args[0], tree_leaves(made))
            return made
        if _local_tensor._check_for_subclass(leaves):
            return NotImplemented
        if is_exchange and schema(func).name in NOTHING_TO_DO:
            self.require_same(leaves, f"{func} of a tensor that all chips have")
        elif is_exchange:
            if func.namespace == "c10d":
                name = schema(func).name.rpartition("::")[2].rstrip("_")
                raise CollectiveError(f"{name} of a plain tensor, which all {self.count} chips of the mesh have")
            args = tree_map(lambda x: self.everywhere(x) if isinstance(x, torch.Tensor) else x, args)
            return self.__torch_dispatch__(func, types, args, kwargs)
        return func(*args, **(kwargs or {}))

    def exchange(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A collective of a mesh that several processes share. Each computes it for all chips, and keeps the
        values of its own chips."""
        assert self.hosts
        own, given = self.hosts.own, [x for x in tree_leaves((args, kwargs)) if isinstance(x, LocalTensor)]
        forms = ", ".join(f"{x.dtype} {tuple(x.shape)}" for x in given)
        with nullcontext() if any(map(_has_no_values, given)) else self.hosts.step(f"{func} of {forms}"):
            args, kwargs = tree_map(self._of_all_hosts, (args, kwargs))
            with LocalTensorMode(self.count):
                results = func(*args, **kwargs)
                tree_map(_wait, results)
        return tree_map(lambda x: of_parts([x._local_tensors[r] for r in own]) if _is_local(x) else x, results)

    def require_same(self, values: Sequence[object], what: str) -> None:
        """Raises MeshError if a plain tensor among `values` differs in another process. Captured graphs have none."""
        if self.hosts and not self._disable:
            self.hosts.agree(f"{what} {digest([x for x in values if _is_plain(x)])}")

    def _of_all_hosts(self, x: Any) -> Any:
        """The values of all chips, for a tensor with a value per chip."""
        if not isinstance(x, LocalTensor):
            return x
        first, *others = parts_of(x) or []
        shares = self.hosts if not _has_no_values(x) else None
        every = shares.all_parts([first, *others]) if shares else [first] * self.count
        return LocalTensor(dict(enumerate(every)))

    def _drawn(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs an op that draws random numbers. Chips with equal values draw equal numbers. Chips with other values
        draw other numbers. So dropout drops the same elements of a sum, which all chips have, but it drops other
        elements in each part of a layer."""
        written = [i for i, a in enumerate(schema(func).arguments) if a.alias_info and a.alias_info.is_write]
        if self.hosts or written not in ([], [0]):
            where = ", in several processes" if self.hosts else ""
            raise CollectiveError(f"{func} of a tensor with a value per chip{where}", DRAW_WHOLE)
        done: list[tuple[list[Any], Any]] = []
        for rank in sorted(self.ranks):
            given = tree_map(lambda x, r=rank: x._local_tensors[r] if _is_local(x) else x, (args, kwargs))
            before = [x.clone() for x in tree_leaves(given) if isinstance(x, torch.Tensor)]
            drawn = next((found for earlier, found in done if all(map(same, earlier, before))), None)
            if drawn is None:
                found = func(*given[0], **given[1])
            else:
                found = given[0][0].copy_(drawn) if written else tree_map(torch.clone, drawn)
            done.append((before, found))
        made = [found for _, found in done]
        if written:
            return args[0]
        return of_parts(made) if isinstance(made[0], torch.Tensor) else tuple(map(of_parts, zip(*made, strict=True)))

    def _write_once(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs an op that writes to a plain tensor. For lists of tensors, it runs once for each position, because
        tensors at other positions may differ from chip to chip."""
        if isinstance(args[0], (list, tuple)) and len(args[0]) > 1:
            for i in range(len(args[0])):
                one = [[x[i]] if isinstance(x, (list, tuple)) else x for x in args]
                self.__torch_dispatch__(func, types, tuple(one), kwargs)
            return None
        return func(*tree_map(self._common, args), **tree_map(self._common, kwargs))

    def _common(self, x: Any) -> Any:
        """The value that all chips have, for an op that writes to a plain tensor. With LocalTensors, the op would run
        once per chip. Raises CollectiveError if the chips have different values."""
        first, *others = parts_of(x) or [x]
        if not all(same(first, other) for other in others):
            raise CollectiveError("a plain tensor, which all chips have, would get another value on each chip")
        if others:
            self.require_same([first], "the new value of a plain tensor, which all chips have,")
        return first

    def forget_another(self, mesh: DeviceMesh) -> None:
        """Drops the coordinates of an earlier mesh whose address `mesh` has got, because they are kept by address."""
        if self._asked.get(id(mesh)) is not mesh:
            self._coordinate_cache.pop(id(mesh), None)
            self._asked[id(mesh)] = mesh

    def everywhere(self, x: torch.Tensor) -> torch.Tensor:
        return of_parts([x] * len(self.ranks))


part_of_graphs(Chips.__torch_dispatch__)


def _keep_alive(x: Any, views: Sequence[Any]) -> None:
    """Keeps a tensor while a view of it is alive. Otherwise `moved_views` would forget that its memory is a copy."""
    for view in views:
        view.tt_viewed = x


def require_equal_parts(shape: Sequence[int], dim: int, count: int) -> None:
    """Raises ShardingError unless `count` chips can have parts of one size along a dimension."""
    if shape[dim] % count:
        why = f"dimension {dim} is split over {count} chips, and the device needs parts of one size"
        raise ShardingError(tuple(shape), why)


def require_equal_parts_of(x: Any) -> None:
    """The same for each dimension of a DTensor."""
    for dim in range(x.ndim):
        axes = [axis for axis, placement in enumerate(x.placements) if placement.is_shard(dim)]
        require_equal_parts(x.shape, dim, math.prod(map(x.device_mesh.size, axes)))


def _writes_plain(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether an op writes to a plain tensor."""
    leaves = tree_leaves(written(func, args, kwargs))
    return any(isinstance(x, torch.Tensor) and not isinstance(x, LocalTensor) for x in leaves)


def _is_plain(x: object) -> TypeGuard[torch.Tensor]:
    return isinstance(x, torch.Tensor) and not isinstance(x, (DTensor, FakeTensor, LocalTensor)) and not x.is_meta


def _has_no_values(x: LocalTensor) -> bool:
    """Whether a tensor belongs to a graph that is captured."""
    return isinstance(next(iter(x._local_tensors.values())), FakeTensor)


def _of_a_graph(values: Sequence[object]) -> bool:
    return any(isinstance(x, LocalTensor) and _has_no_values(x) for x in values)


def same(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Whether all values are equal, where NaN equals NaN."""
    return x.shape == y.shape and bool(((x == y) | ((x != x) & (y != y))).all())


def _wait(x: object) -> None:
    """Ends a collective for all chips. This process later waits for its own chips only."""
    if isinstance(x, LocalTensor):
        torch.ops._c10d_functional.wait_tensor(x)


def _is_local(x: object) -> bool:
    return isinstance(x, LocalTensor)


def of_parts(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """A tensor with a value per chip, given the values of this process's chips."""
    own = hosts()
    return LocalTensor(dict(zip(own.own if own else range(len(parts)), parts, strict=True)))


class _Parts(torch.autograd.Function):
    """The parts of a tensor along dimension 0, one per chip. Its gradient is made of those of the parts."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, count: int) -> torch.Tensor:
        parts, own = x.detach().chunk(count), hosts()
        for mode in RUNNING:
            mode.require_same([x], "a tensor that is split over the chips")
        ctx.count = len(own.own) if own else count
        return of_parts([parts[chip] for chip in own.own] if own else parts)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        parts, own = parts_of(grads[0]) or [grads[0]] * ctx.count, hosts()
        if own:
            with own.step(f"the gradient of a tensor that is split over the chips, {tuple(grads[0].shape)}"):
                parts = own.all_parts(parts)
        return torch.cat(parts), None


def of_whole(x: torch.Tensor, count: int) -> torch.Tensor:
    """A tensor with a value per chip: one of `count` parts of `x` along dimension 0, which all processes have."""
    return _Parts.apply(x, count)  # type: ignore[no-untyped-call]


def parts_of(x: torch.Tensor) -> list[torch.Tensor] | None:
    """The value of each chip of this process; None for a plain tensor."""
    return [x._local_tensors[r] for r in sorted(x._local_tensors)] if isinstance(x, LocalTensor) else None


def running() -> Chips | None:
    """The mode, while this process has all chips of a mesh."""
    return RUNNING[-1] if RUNNING else None


def hosts() -> Hosts | None:
    """The processes that share the mesh; None if this process has all of it, or if there is no mesh."""
    return RUNNING[-1].hosts if RUNNING else None


def chips() -> int:
    """The number of chips of the mesh."""
    return RUNNING[-1].count

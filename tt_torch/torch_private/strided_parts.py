"""DTensors whose split dimension was joined with the dimension before it, as `x.flatten()` does: `_StridedShard`.

If a tensor of 2x8 with split columns is flattened, a chip of four has the elements 0, 1, 8 and 9.

Importing this module imports torch.distributed.tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta  # 2.13.0: for _with_its_order
from torch.distributed.tensor.placement_types import (
    _StridedShard,  # 2.13.0: for _of_equal_parts
    _StridedShardOffsetMode,  # 2.13.0: the same
)


# 2.13.0: without it the place of a part would be read from a tensor. While a program is captured, tensors have no
# values, so most ops of such a DTensor would be errors.
def _of_equal_parts(of: Any) -> Callable[..., Any]:
    mode = _StridedShardOffsetMode

    def local_shard_size_and_offset(
        self: Any, curr_local_size: Any, num_chunks: int, rank: Any, offset_mode: Any = mode.FIRST
    ) -> tuple[Any, Any]:
        run, rest = divmod(curr_local_size, self.split_factor * num_chunks)
        if rest or not run:
            return of(self, curr_local_size, num_chunks, rank, offset_mode)
        starts = [(block * num_chunks + rank) * run for block in range(self.split_factor)]
        offsets = {mode.FIRST: starts[0], mode.ALL: [start + i for start in starts for i in range(run)]}
        return curr_local_size // num_chunks, offsets.get(mode(offset_mode))

    return local_shard_size_and_offset


# 2.13.0: without it a tensor that all chips have could not get such parts while a program is captured, because the
# number of a chip is not known then.
def _of_an_unknown_chip(of: Any) -> Callable[..., torch.Tensor]:
    def _select_split_tensor(
        self: Any, tensor: torch.Tensor, num_chunks: int, index: Any, *, with_padding: bool = True, **how: bool
    ) -> torch.Tensor:
        if not isinstance(index, torch.SymInt) or tensor.shape[self.dim] % (self.split_factor * num_chunks):
            return of(self, tensor, num_chunks, index, with_padding=with_padding, **how)
        blocks = tensor.unflatten(self.dim, (self.split_factor, -1))
        part = Shard(self.dim + 1)._select_split_tensor(blocks, num_chunks, index, with_padding=False, **how)
        return part.flatten(self.dim, self.dim + 1)

    return _select_split_tensor


# 2.13.0: without it a DTensor whose placements say the order of its parts could not be a result of a captured graph.
def _with_its_order(of: Any) -> Any:
    def __tensor_unflatten__(inner: dict[str, Any], context: Any, size: torch.Size, stride: tuple[int, ...]) -> DTensor:
        placements, meta, order, requires_grad = context
        if order is None or not any(isinstance(placement, _StridedShard) for placement in placements):
            return of(inner, context, size, stride)
        spec = DTensorSpec(
            inner["device_mesh"],
            placements,
            tensor_meta=TensorMeta(size, stride, meta.dtype),
            shard_order=order,
            use_strided_shard_as_shard_order=False,
        )
        return DTensor(inner["_local_tensor"], spec, requires_grad=requires_grad)

    return staticmethod(__tensor_unflatten__)


PATCHES: Sequence[tuple[Any, str, Callable[[Any], Any]]] = (
    (_StridedShard, "local_shard_size_and_offset", _of_equal_parts),
    (_StridedShard, "_select_split_tensor", _of_an_unknown_chip),
    (DTensor, "__tensor_unflatten__", _with_its_order),
)

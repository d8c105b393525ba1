"""Whole tensors of the host on a mesh of chips, and back. Programs for a mesh have these functions, too.

A sharding has two entries: the dimension of the tensor that the rows of the mesh split, and the dimension that its
columns split. None means that each row, or each column, has the whole tensor. If both split the same dimension, the
rows split it first.
"""

from __future__ import annotations

import numpy as np
import ttnn


def distribute(tensor: ttnn.Tensor, sharding: tuple[int | None, ...], device: ttnn.MeshDevice) -> ttnn.Tensor:
    """The parts of all chips on the host. A tensor without parts stays as it is; to_device copies it to all chips."""
    rows, columns = sharding
    if rows is None and columns is None:
        return tensor
    if rows == columns:
        mapper = ttnn.shard_tensor_to_mesh_mapper(device, rows)
    else:
        mapper = ttnn.create_mesh_mapper(device, ttnn.MeshMapperConfig(rows, columns))
    return ttnn.distribute_tensor(tensor, mapper)


def compose(tensor: ttnn.Tensor, sharding: tuple[int | None, ...], device: ttnn.MeshDevice) -> np.ndarray:
    """The whole array. If several chips have the same part, the first of them is read."""
    rows, columns = sharding
    parts, count = parts_of(tensor), device.shape[1]
    lines = [parts[start : start + count] for start in range(0, len(parts) if rows is not None else count, count)]
    arrays = [[to_array(part) for part in line[: 1 if columns is None else None]] for line in lines]
    joined = [line[0] if columns is None else np.concatenate(line, columns) for line in arrays]
    return joined[0] if rows is None else np.concatenate(joined, rows)


def parts_of(tensor: ttnn.Tensor) -> list[ttnn.Tensor]:
    """The parts of all chips, on the host."""
    return ttnn.get_device_tensors(ttnn.from_device(tensor) if ttnn.is_tensor_storage_on_device(tensor) else tensor)


def to_array(tensor: ttnn.Tensor) -> np.ndarray:
    # NumPy has no bfloat16 and no block floats. float32 has all of their values.
    narrow = tensor.dtype in (ttnn.bfloat16, ttnn.bfloat8_b, ttnn.bfloat4_b)
    return (ttnn.to_dtype(tensor, ttnn.float32) if narrow else tensor).to_numpy()

"""The binary's description of a tensor, in terms of the `ttnn` package."""

from __future__ import annotations

import math

import numpy as np
import ttnn

from .messages import TensorFacts, Values
from .sharding import distribute

NAMES = {"ttnn": ttnn, "np": np}


class Specification:
    """The binary's description of a tensor, as objects of the package."""

    def __init__(self, facts: TensorFacts) -> None:
        self.name, self.shape = facts["name"], list(facts["shape"])
        self.dtype: ttnn.DataType = eval(facts["dtype"], NAMES)
        self.layout: ttnn.Layout = eval(facts["layout"], NAMES)
        self.sharding = facts["sharding"]
        self.memory_config: ttnn.MemoryConfig | None = eval(facts["memory_config"], NAMES)

    def make(self, device: ttnn.MeshDevice) -> ttnn.Tensor:
        """A tensor as specified, with undefined values on the device and zeros on the host."""
        if self.memory_config is not None:
            return ttnn.empty(self.shape, self.dtype, self.layout, device, self.memory_config)
        return self.place(np.zeros(self.shape, np.float32), device)

    def place(self, values: Values, device: ttnn.MeshDevice) -> ttnn.Tensor:
        """A tensor as specified, with these values. Each chip gets its part of an array, or its array of a list."""
        tensor = self.on_host(values, device)
        if self.memory_config is None:
            return tensor
        return ttnn.to_device(tensor, device, memory_config=self.memory_config)

    def on_host(self, values: Values, device: ttnn.MeshDevice) -> ttnn.Tensor:
        """The parts of these values for each chip, on the host, in the specified data type and layout.

        Values of bfloat16 come as float32, because the package takes no bfloat16 arrays.
        """
        if isinstance(values, list):
            tensor = ttnn.from_host_shards([ttnn.Tensor(array, self.dtype) for array in values], device.shape)
        else:
            tensor = distribute(ttnn.Tensor(values, self.dtype), self.sharding, device)
        return tensor if self.layout == ttnn.ROW_MAJOR_LAYOUT else ttnn.to_layout(tensor, self.layout)

    def differences(self, tensor: ttnn.Tensor, blocked: bool = False) -> list[str]:
        """Lists what is not as specified. The padding of `blocked` tensors is not compared: the library chooses it."""
        on_device = ttnn.is_tensor_storage_on_device(tensor)
        found = {
            "shape": list(tensor.shape),
            "padded volume": None if blocked else math.prod(tensor.padded_shape),
            "dtype": tensor.dtype,
            "layout": tensor.layout,
            "memory config": tensor.memory_config() if on_device else None,
        }
        wanted = {
            "shape": self.shape,
            "padded volume": None if blocked else self._padded_volume(),
            "dtype": self.dtype,
            "layout": self.layout,
            "memory config": self.memory_config,
        }
        return [f"{k} is {_short(found[k])}, not {_short(wanted[k])}" for k in wanted if found[k] != wanted[k]]

    def _padded_volume(self) -> int:
        if self.layout != ttnn.TILE_LAYOUT:
            return math.prod(self.shape)
        *outer, rows, columns = [1, 1, *self.shape]
        return math.prod(outer) * _round_up(rows) * _round_up(columns)


def _round_up(size: int) -> int:
    return -(-size // ttnn.TILE_SIZE) * ttnn.TILE_SIZE


def _short(value: object) -> str:
    if isinstance(value, ttnn.MemoryConfig):
        return f"{value.memory_layout.name} {value.buffer_type.name}"
    return "host" if value is None else getattr(value, "name", str(value))

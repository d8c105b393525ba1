"""Block floating point: 16 consecutive values share an exponent. Each has a sign and 7 (bfp8_b) or 3 (bfp4_b) bits."""

from __future__ import annotations

import numpy as np

import tt_torch.runtime._runtime as _runtime
from tt_torch.runtime import DataType
from tt_torch.wire.facts import BLOCK_FLOATS, TILE

_TYPES = {name: getattr(DataType, dtype) for name, dtype in BLOCK_FLOATS.items()}


def pack_tile(tile: np.ndarray, dtype: str) -> bytes:
    """Packs a 32x32 tile as the device stores it: 64 exponents, then the mantissas face by face.

    `tile` is converted to float32; `dtype` is "bfp8_b" (1088 bytes) or "bfp4_b" (576 bytes). Raises InputShapeError if
    `tile` does not have 1024 values.
    """
    return bytes(_runtime.pack_tile(np.array(tile, dtype=np.float32, order="C"), _TYPES[dtype]))


def unpack_tile(data: bytes, dtype: str) -> np.ndarray:
    """The 32x32 float32 values of a tile that was packed by `pack_tile`."""
    return np.frombuffer(bytearray(_runtime.unpack_tile(data, _TYPES[dtype])), np.float32).reshape(TILE, TILE)


def round_to_blocks(values: np.ndarray, dtype: str) -> np.ndarray:
    """Rounds `values` to float32 numbers that block floats can represent. Blocks run along the last dimension."""
    result = np.array(values, dtype=np.float32, order="C")
    _runtime.round_to_blocks(result, result.shape[-1] if result.ndim else 1, _TYPES[dtype])
    return result

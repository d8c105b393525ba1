"""The fields of a program with one op, for kernels that refuse it."""

from dataclasses import dataclass

import torch

HUGE, STEP = 1 << 20, 1 << 30  # beyond the limits of sizes and steps

Fields = dict[str, object]  # tensors are operands, `Result`s are results, all other values are attributes


@dataclass(frozen=True)
class Result:
    shape: tuple[int, ...]
    dtype: str = "Float32"


def x(*shape, dtype=torch.float32):
    """An operand. Its values are never read."""
    return torch.empty(shape, dtype=dtype, device="meta")


def ints(*shape):
    return x(*shape, dtype=torch.int32)


def y(*shape, dtype="Float32"):
    return Result(shape, dtype)

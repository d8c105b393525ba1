"""The type of a row of the kernel tests, and functions that make its operands."""

from dataclasses import dataclass, field

import torch


@dataclass
class Row:
    op: str
    operands: dict  # field of the op -> tensor
    results: dict  # field of the op -> shape, or (shape, wire type)
    expected: object  # a function from the operands to the results, in this order
    attributes: dict = field(default_factory=dict)
    label: str = ""
    in_place: tuple = ()  # fields of operands that the op changes; they follow the results
    tolerance: float = 1e-5

    def __str__(self):
        return f"{self.op} {self.label}".strip()


def randn(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def indices(high, *shape):
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(high), dtype=torch.int64)

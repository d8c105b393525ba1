"""What a row of the kernel tests says, and where its operands come from."""

from dataclasses import dataclass, field

import torch


@dataclass
class Row:
    op: str
    operands: dict  # name: tensor
    results: dict  # name: shape, or (shape, wire type)
    expected: object  # operands -> the results in order
    attributes: dict = field(default_factory=dict)
    label: str = ""
    in_place: tuple = ()  # operands that are results, too
    tolerance: float = 1e-5

    def __str__(self):
        return f"{self.op} {self.label}".strip()


def randn(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def indices(high, *shape):
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(high), dtype=torch.int64)

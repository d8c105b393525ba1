"""The ops of StableHLO at the edges of their types, compared with StableHLO's own interpreter."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
import torch
from edge_rows import BITS, TYPES, Row, named, rows

from tt_torch.bringup.interpret import evaluate
from tt_torch.config import CompilerConfig
from tt_torch.driver import stablehlo as driver_stablehlo
from tt_torch.driver.stablehlo import compile_stablehlo, in_a_list
from tt_torch.mlir.context import make_context

DOUBLE = 2e-5  # the device computes it in float32
TOLERANCES = {torch.bfloat16: 2e-2, torch.float16: 2e-3, torch.float32: 1e-5, torch.float64: DOUBLE}
EXACT = ("convert", "bitcast", "reduce_precision", "round", "sort", "pad", "constant", "iota", "add", "abs", "negate")
# The device may take either zero for the larger one.
EITHER_ZERO = ("maximum", "minimum", "clamp")


def merged(group: Sequence[Row]) -> tuple[str, list[torch.Tensor]]:
    """The rows as one program, and its inputs."""
    arguments, lines = [], []
    for number, row in enumerate(group):
        lines.append(re.sub(r"%(\w+)", rf"%r{number}\1", row.body))
        for letter, kind, x in zip("abc", row.kinds, row.inputs, strict=False):
            arguments.append(f"%r{number}{letter}: {named(kind, *x.shape)}")
    types = ", ".join(row.result for row in group)
    values = ", ".join(f"%r{number}0" for number in range(len(group)))
    body = "\n".join([*lines, f"return {values} : {types}"])
    return f"func.func @main({', '.join(arguments)}) -> ({types}) {{\n{body}\n}}", [x for r in group for x in r.inputs]


def wrong(row: Row, got: torch.Tensor, expected: torch.Tensor) -> str:
    """The elements that differ, as text; "" if none does."""
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), row.name
    if expected.is_floating_point():
        differs = float_difference(row, got.double(), expected.double(), TOLERANCES[expected.dtype])
    else:
        differs = got.to(torch.int64) != expected.to(torch.int64)
        if BITS[row.result.rpartition("x")[2].strip("tensor<>")] == 64:
            differs &= within_32_bits(expected)
    places = differs.flatten().nonzero().flatten().tolist()
    inputs = [[x.flatten()[i].item() for x in row.inputs if x.numel() > i] for i in places[:3]]
    values = [(got.flatten()[i].item(), expected.flatten()[i].item()) for i in places[:3]]
    return f"{row.name}: {len(places)} differ, first of {inputs}: (got, expected) {values}" if places else ""


def float_difference(row: Row, got: torch.Tensor, expected: torch.Tensor, tolerance: float) -> torch.Tensor:
    if row.name.startswith(EXACT) and tolerance != DOUBLE:
        differs = ~((got == expected) | (got.isnan() & expected.isnan()))
    else:
        differs = ~torch.isclose(got, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    signs = (got.signbit() != expected.signbit()) & (expected == 0) & (not row.name.startswith(EITHER_ZERO))
    beyond = expected.isfinite() & (expected.abs() > torch.finfo(torch.float32).max)  # float64 is float32 on the device
    return (differs | signs) & ~beyond


def within_32_bits(expected: torch.Tensor) -> torch.Tensor:
    limits = torch.iinfo(torch.int32 if expected.dtype == torch.int64 else torch.uint32)
    values = torch.tensor(expected.tolist(), dtype=torch.float64)  # PyTorch does not compare uint64
    return (values >= limits.min) & (values <= limits.max)


def differences(group: Sequence[Row]) -> list[str]:
    text, inputs = merged(group)
    with make_context():
        results = in_a_list(compile_stablehlo(text, CompilerConfig(verify_ir=True))(*inputs))
    compared = zip(group, results, evaluate(text, inputs), strict=True)
    return [text for row, got, expected in compared if (text := wrong(row, got, expected))]


@pytest.mark.filterwarnings("ignore::tt_torch.driver.partition.HostFallbackWarning")  # powers of integers
@pytest.mark.parametrize("kind", TYPES)
def test_all_ops_of_a_type(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that leaves 32 bits would make the call of all rows an error: see test_wide_stablehlo.py."""
    monkeypatch.setattr(driver_stablehlo, "check_wide_integers", lambda module: [])
    assert not differences(rows(kind))

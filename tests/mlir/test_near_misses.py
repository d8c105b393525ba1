"""The programs of the IR tests of TTIR's passes with one change: another operand, number, flag or reader.

A pass that matches too much changes the results of some of them. Each program is run with and without its pass.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from test_passes_keep_values import TTIR, check, modules
from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.errors import IRVerificationError
from tt_torch.mlir import pipeline
from tt_torch.mlir.context import context_to_compile
from tt_torch.mlir.functions import main
from tt_torch.mlir.verify import verify

Change = Callable[[ir.Module, random.Random], bool]  # whether it has found a place to change
CHANGES: list[Change] = []
PER_MODULE = 3


def body(module: ir.Module) -> list[ir.OpView]:
    return list(main(module).regions[0].blocks[0].operations)


@CHANGES.append
def another_operand(module: ir.Module, draw: random.Random) -> bool:
    """An operand becomes another value of its type that exists before the op."""
    before, places = list(main(module).arguments), []
    for op in body(module):
        for i, operand in enumerate(op.operands):
            others = [v for v in before if v.type == operand.type and v != operand]
            places += [(op, i, other) for other in others]
        before += op.results
    if places:
        op, i, other = draw.choice(places)
        op.operands[i] = other
    return bool(places)


@CHANGES.append
def another_number(module: ir.Module, draw: random.Random) -> bool:
    """A float becomes another float, or the integers of a list get another order."""
    places = _attributes(module, ir.FloatAttr, ir.DenseI64ArrayAttr)
    if places:
        op, name = draw.choice(places)
        old = op.attributes[name]
        if isinstance(old, ir.FloatAttr):
            op.attributes[name] = ir.FloatAttr.get(old.type, old.value * 1.25 + 0.125)
        else:
            op.attributes[name] = ir.DenseI64ArrayAttr.get(draw.sample([*old], len(old)))
    return bool(places)


def _attributes(module: ir.Module, *kinds: type) -> list[tuple[ir.OpView, str]]:
    return [(op, name) for op in body(module) for name in op.attributes if isinstance(op.attributes[name], kinds)]


@CHANGES.append
def another_flag(module: ir.Module, draw: random.Random) -> bool:
    places = _attributes(module, ir.BoolAttr)
    if places:
        op, name = draw.choice(places)
        op.attributes[name] = ir.BoolAttr.get(not op.attributes[name].value)
    return bool(places)


@CHANGES.append
def another_reader(module: ir.Module, draw: random.Random) -> bool:
    """A value inside of the function is a result of it, too."""
    *ops, end = body(module)
    inner = [v for op in ops for v in op.results if v not in list(end.operands)]
    if inner:
        values = [*end.operands, draw.choice(inner)]
        function = main(module)
        kinds = ir.FunctionType.get(function.type.inputs, [v.type for v in values])
        function.attributes["function_type"] = ir.TypeAttr.get(kinds)
        with ir.InsertionPoint(end), end.location:
            ir.Operation.create(end.operation.name, operands=values)
        end.operation.erase()
    return bool(inner)


def near(text: str, draw: random.Random) -> Iterator[str]:
    """Valid modules that differ from `text` in one place."""
    for _ in range(20):
        with context_to_compile(), ir.Location.unknown():
            module = ir.Module.parse(text)
            if draw.choice(CHANGES)(module, draw):
                try:
                    verify(module)
                except IRVerificationError:
                    continue
                yield str(module)


# The step apply-dtype is left out, because it is meant to change results.
@pytest.mark.parametrize(("text", "step"), modules(TTIR[1:]))
def test_results_stay(text: str, step: str) -> None:
    draw = random.Random(text)
    for _, changed in zip(range(PER_MODULE), near(text, draw), strict=False):
        check(changed, pipeline.TO_TTNN, [(step, pipeline.STEPS[step]), *pipeline.TO_TTNN], CompilerConfig())

"""Old names of `tt_torch.tools.utils` that are not in it already."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

import torch

from tt_torch.compat import refused
from tt_torch.compat.dynamo.shlo_backend import parse_module_from_str
from tt_torch.mlir.functions import block, main
from tt_torch.mlir.types import Value

P = ParamSpec("P")
R = TypeVar("R")
ParsedOp: TypeAlias = tuple[str, str, list[str], dict[str, str], list[list[int]], list[list[int]], str]

RuntimeIntermediate = refused(
    "tt_torch.tools.utils.RuntimeIntermediate",
    "With enable_intermediate_verification the comparison is printed and written as a CSV file: docs/bring_up.md.",
)


def with_torch_dynamo_cleanup(function: Callable[P, R]) -> Callable[P, R]:
    """The function, after which PyTorch forgets all that it has compiled."""

    @wraps(function)
    def clean(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        finally:
            torch.compiler.reset()

    return clean


def tt_torch_error_message(function: Callable[P, R]) -> Callable[P, R]:
    """The function itself: each error of this package says by itself what to do."""
    return function


def parse_shlo_mlir(mlir_code: str) -> tuple[list[ParsedOp], dict[str, dict[str, dict[str, Any]]]]:
    """The ops of a StableHLO program as tuples: name of the result, name of the op, operands, attributes, shapes of the
    operands, shapes of the results, text. The second result has them by name and by shapes: `"stablehlo.add"`,
    `"2x3x2x3"` gives the number of ops and their texts."""
    ops: list[ParsedOp] = []
    unique: dict[str, dict[str, dict[str, Any]]] = {}
    module = parse_module_from_str(mlir_code)  # it has to outlive its ops
    for op in block(main(module)).operations:
        if op.operation.name == "func.return":
            continue
        text = str(op)
        attributes = {name: str(op.operation.attributes[name]) for name in op.operation.attributes}
        shapes = [[_shape(v) for v in values] for values in (op.operands, op.results)]
        result = op.results[0].get_name()
        ops.append((result, op.operation.name, [v.get_name() for v in op.operands], attributes, *shapes, text))
        key = "x".join(str(size) for shape in shapes[0] for size in shape)
        form = unique.setdefault(op.operation.name, {}).setdefault(key, {"ops": [], "num_ops": 0})
        form["ops"].append(text)
        form["num_ops"] += 1
    return ops, unique


def _shape(value: Value) -> list[int]:
    return list(value.type.shape)

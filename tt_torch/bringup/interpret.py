"""Computes values inside a StableHLO program with StableHLO's own interpreter.

The interpreter is slow and can abort, so it runs in a worker process.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch_mlir import ir
from torch_mlir._mlir_libs import _stablehlo

from tt_torch.mlir.context import make_context, run_native
from tt_torch.mlir.functions import block, main, replace
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.dtypes import DTYPES
from tt_torch.mlir.types import Function
from tt_torch.workers.engine import Outcome

LARGEST = 1 << 16  # elements of a program's inputs: the interpreter takes some µs for each


def fill_in(file: str) -> Outcome:
    """Computes the inputs and results that are missing in an op's file, from the known ones."""
    work = torch.load(file, weights_only=False)
    program = work.pop("slice")
    if program and sum(t.numel() for t in program["inputs"]) <= LARGEST:
        found = iter(evaluate(program["module"], program["inputs"]))
        for field in ("inputs", "golden"):
            types = work["input_types"] if field == "inputs" else [(None, dtype) for dtype in work["dtypes"]]
            work[field] = [
                next(found).to(dtype) if value is None else value
                for value, (_, dtype) in zip(work[field], types, strict=True)
            ]
        torch.save(work, file)
    return {"verdict": "match"}


def evaluate(source: str | bytes, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The results of `main` of a StableHLO module, given as text or as bytecode."""
    context = make_context()
    context.allow_unregistered_dialects = True  # torch-mlir lacks Shardy's
    with context, ir.Location.unknown():
        module = ir.Module.parse(source)
        function = main(module)
        _replace_constants(function)
        run_native(module, "func.func(chlo-legalize-to-stablehlo,stablehlo-legalize-deprecated-ops)", "inline")
        types = [argument.type for argument in main(module).arguments]
        arguments = [attribute(value, type_) for value, type_ in zip(inputs, types, strict=True)]
        return [tensor(result) for result in _stablehlo.eval_module(module, arguments)]


def _replace_constants(function: Function) -> None:
    """Replaces tensors of the dialect arith, which torch-mlir leaves. The interpreter knows only StableHLO."""
    for op in list(block(function).operations):
        op = op.operation
        if op.name == "arith.constant" and isinstance(op.result.type, ir.RankedTensorType):
            with ir.InsertionPoint(op):
                value = {"value": op.attributes["value"]}
                replace(op, ir.Operation.create("stablehlo.constant", [r.type for r in op.results], [], value))


def attribute(x: torch.Tensor, type_: ir.Type) -> ir.Attribute:
    """The values of a tensor as a constant of MLIR."""
    if x.dtype is torch.bool or not x.numel():
        return ir.Attribute.parse(f"dense<{str(x.tolist()).lower() if x.numel() else ''}> : {type_}")
    raw = x.detach().contiguous().reshape(-1).view(torch.uint8)
    return ir.Attribute.parse(f'dense<"0x{raw.numpy().tobytes().hex()}"> : {type_}')


def tensor(result: ir.Attribute) -> torch.Tensor:
    """The values of a constant of MLIR."""
    values = attrs.elements(result)
    values = values.astype(np.uint64) if values.dtype.char == "Q" else values  # a name that PyTorch does not know
    return torch.from_numpy(values.copy()).to(DTYPES[str(result.type.element_type)])

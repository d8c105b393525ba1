"""One op of StableHLO as a function of PyTorch: traced, decomposed, and lowered to plain ops of StableHLO.

Importing this module takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt

import torch
from torch import Tensor
from torch.fx import GraphModule
from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.dynamo.complex_pairs import has_complex, to_pairs
from tt_torch.dynamo.composites import FUNCTIONS
from tt_torch.dynamo.decompositions import DECOMPOSITIONS
from tt_torch.dynamo.decompositions.linalg import LARGEST, UNROLLED
from tt_torch.dynamo.decompositions.registry import NARROW
from tt_torch.dynamo.passes import run_passes
from tt_torch.dynamo.passes.constant_fold import LARGEST as LARGEST_FOLDED
from tt_torch.mlir.context import run_native, unsupported
from tt_torch.mlir.functions import block, main
from tt_torch.mlir.stablehlo import lowering
from tt_torch.mlir.stablehlo.build import constant
from tt_torch.mlir.stablehlo.dtypes import DTYPES
from tt_torch.mlir.stablehlo.importer import import_graph
from tt_torch.mlir.types import Value
from tt_torch.torch_private.tensors import FakeTensorMode
from tt_torch.torch_private.tracing import make_fx

# Elements of the matrix of a transform. It is computed at compile time, from a matrix of 64-bit integers.
LARGEST_MATRIX = LARGEST_FOLDED // 8

ACCEPTED = {
    "stablehlo.cholesky": f"real matrices of at most {LARGEST['Cholesky']} rows",
    "stablehlo.fft": f"lengths of at most {LARGEST_MATRIX:,} without a prime factor above {isqrt(LARGEST_MATRIX):,}",
    "stablehlo.triangular_solve": f"real matrices of at most {LARGEST['Cholesky']} rows",
}


def lowered(op: ir.Operation, compute: Callable[..., Tensor]) -> ir.Module:
    """The op as a module of StableHLO. Complex numbers have both parts in a last dimension."""
    graph = _traced(compute, list(op.operands), DTYPES[str(op.results[0].type.element_type)])
    _refuse(op, has_complex(graph) or any(node.target in UNROLLED for node in graph.graph.nodes))
    constants = run_passes(graph, CompilerConfig())
    _refuse(op, any(node.target in FUNCTIONS for node in graph.graph.nodes))  # their bodies would be in `main`'s module
    arguments = graph.graph.find_nodes(op="placeholder")
    module = import_graph(graph.graph, op.context, ["input"] * len(arguments))
    lowering.to_stablehlo(module)
    body = block(main(module))
    with ir.InsertionPoint.at_block_begin(body):
        for argument, value in zip(list(body.arguments)[len(op.operands) :], constants.values(), strict=True):
            argument.replace_all_uses_with(constant(argument.type, value.numpy()))
    run_native(module, "canonicalize", "cse")
    return module


def _refuse(op: ir.Operation, is_refused: bool) -> None:
    if is_refused:
        raise unsupported(op, "stablehlo-to-ttir", ACCEPTED.get(op.name, ""))


def _traced(compute: Callable[..., Tensor], operands: list[Value], dtype: torch.dtype) -> GraphModule:
    """The graph of a function, in ops that have no further decomposition. Narrow types are computed in float32."""

    def run(*values: Tensor) -> tuple[Tensor]:
        return (compute(*(v.float() if v.dtype in NARROW else v for v in values)).to(dtype),)

    kinds = [v.type for v in operands]
    with torch.no_grad(), FakeTensorMode():
        fakes = [torch.empty(list(kind.shape), dtype=DTYPES[str(kind.element_type)], device="cpu") for kind in kinds]
        graph = make_fx(run, decomposition_table=DECOMPOSITIONS)(*fakes)
        return to_pairs(graph, DECOMPOSITIONS) if has_complex(graph) else graph

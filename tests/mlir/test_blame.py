"""The op that torch-mlir cannot lower is found: each op is tried alone, with the constants that it reads."""

from __future__ import annotations

import pytest
from torch_mlir import ir

from tt_torch.mlir.child import NativeCrash
from tt_torch.mlir.context import make_context
from tt_torch.mlir.functions import block, main
from tt_torch.mlir.stablehlo.blame import first_failing

SUM = "!torch.vtensor<[3],f32>"
PROGRAM = f"""
func.func @main(%x: !torch.vtensor<[2,3],f32>) -> {SUM} {{
  %zero = torch.constant.int 0
  %dims = torch.prim.ListConstruct %zero : (!torch.int) -> !torch.list<int>
  %false = torch.constant.bool false
  %none = torch.constant.none
  %s = torch.aten.sum.dim_IntList %x, %dims, %false, %none :
    !torch.vtensor<[2,3],f32>, !torch.list<int>, !torch.bool, !torch.none -> {SUM} loc("sum")
  %r = torch.aten.relu %s : {SUM} -> {SUM} loc("relu")
  return %r : {SUM}
}}
"""


@pytest.mark.parametrize("name", ["sum", "relu"])
def test_the_failing_op_is_found(name: str) -> None:
    tried = []

    def lower(module: ir.Module) -> None:
        *constants, op, _ = (o.operation.name for o in block(main(module)).operations)
        tried.append((op, constants, [str(a.type) for a in main(module).arguments]))
        if name in op:
            raise NativeCrash("killed")

    module = ir.Module.parse(PROGRAM, make_context())
    location = first_failing(main(module), lower)
    assert location is not None and str(location) == f'loc("{name}")'
    read = ["int", "ListConstruct", "bool", "none"]
    op, constants, arguments = tried[0]
    assert (op, [c.rpartition(".")[2] for c in constants]) == ("torch.aten.sum.dim_IntList", read)
    assert arguments == ["!torch.vtensor<[2,3],f32>"]
    assert tried[1:] == ([("torch.aten.relu", [], [SUM])] if name == "relu" else [])

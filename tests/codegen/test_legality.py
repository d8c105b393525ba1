"""The verifier's legality rules agree with Tenstorrent's library on random programs of one op."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch_mlir import ir

import tt_torch
from benchmarks.legality import Case, build, drawn
from tt_torch.config import CompilerConfig
from tt_torch.errors import UnsupportedOpError
from tt_torch.mlir import ods
from tt_torch.mlir.context import make_context
from tt_torch.mlir.ttnn import legality
from tt_torch.mlir.ttnn.layout import Layout
from tt_torch.wire.calls import device_ops
from tt_torch.wire.decode import decode


@pytest.mark.conformance
@pytest.mark.needs_ttnn
def test_the_library_takes_every_legal_program(checkers):
    """`python -m benchmarks legality` draws 2,000 programs, and lists the programs that only our rules refuse."""
    judged = list(drawn(150, checkers(), start=1))
    assert [(theirs[0].differences, text) for _, ours, theirs, text in judged if theirs and not ours] == []
    assert sum(bool(ours) == bool(theirs) for _, ours, theirs, _ in judged) >= 0.9 * len(judged)


def test_each_rule_is_for_an_op():
    declared = {name for name in ods.OPS if name.startswith("ttnn.")}
    assert declared | {"func.call", "func.return"} >= legality.ANY_FORM | set(legality.RULES)
    assert not legality.ANY_FORM & set(legality.RULES)


def scan(dtype, pages):
    """The reason why a scan with this data type and these pages is refused. Its only rule is its declaration."""
    layout = f'#ttnn.layout<"{dtype}", "{pages}", "DRAM", "Interleaved", array<i64: 1, 1>>'
    tensor = f"tensor<2x3xf32, {layout}>"
    text = f'"ttnn.cumsum"(%x) {{dim = 1}} : ({tensor}) -> {tensor}'
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(f"func.func @main(%x: {tensor}) {{\n%0 = {text}\nreturn\n}}")
        return legality.refusal(module.body.operations[0].regions[0].blocks[0].operations[0].operation)


def test_an_op_declared_with_any_tiles_takes_them():
    assert scan("Float32", "Tile") == scan("UInt8", "Tile") == ""
    assert scan("Float32", "RowMajor") == "an operand of Float32 in RowMajor"


def test_an_op_without_a_rule_is_refused(monkeypatch):
    monkeypatch.delitem(legality.RULES, "ttnn.cumsum")
    assert scan("Float32", "Tile") == "an op without a rule"


def test_each_op_that_the_verifier_meets_has_a_rule():
    """Ops of recordings have no rule, because they are written after the verifier has run."""
    recorded = {"write_tensor", "copy", "begin_trace_capture", "end_trace_capture", "execute_trace"}
    declared = {name for name in ods.OPS if name.startswith("ttnn.")}
    assert declared - {*legality.RULES} - legality.ANY_FORM == {f"ttnn.{name}" for name in recorded}


def test_an_illegal_op_is_named():
    bytes_in_tiles = ([2, 3], Layout("UInt8"))
    with make_context(), ir.Location.name("add_1: aten.add.Tensor"):
        module = build("ttnn.add", Case([bytes_in_tiles, bytes_in_tiles]), "DRAM")
        with pytest.raises(UnsupportedOpError, match="does not take an operand of UInt8 in Tile") as caught:
            legality.verify(module)
    assert caught.value.op == "aten.add.Tensor"


def test_linear_ops_that_the_library_refuses_in_l1_are_told_how_to_compute():
    """For linear ops with transposed weights and a bias, the library refuses L1 without a program configuration, except
    if the weights are square."""
    layers = nn.Linear(64, 32), nn.Softmax(-1), nn.Linear(32, 32), nn.Softmax(-1), nn.Linear(32, 8), nn.Softmax(-1)
    config = CompilerConfig(dtype="bf16", enable_optimizer=True)
    binary = tt_torch.compile_model(nn.Sequential(*layers).eval(), (torch.randn(4, 64),), config).binary
    made = [op for op in device_ops(decode(binary)) if op.name in ("LinearOp", "SoftmaxOp")]
    assert [op.results[0].place for op in made] == ["L1"] * 6
    assert all(op.record.get("matmul_program_config") for op in (made[0], made[4]))

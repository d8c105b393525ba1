"""Sizes that constants give become static, and open sizes are errors. Ops on empty tensors are tested, too."""

from __future__ import annotations

import pytest
import torch
from foreign_programs import Program, check, i32, randn, run
from torch_mlir import ir

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.driver.compile import compile_module
from tt_torch.errors import CompileError, UnsupportedOpError
from tt_torch.mlir.context import make_context

SIZES = "%s = stablehlo.constant dense<[2, 3]> : tensor<2xi32>\n%n = stablehlo.constant dense<1> : tensor<1xi32>\n"
SLICE = "stablehlo.real_dynamic_slice %a, %n, %e, %t"
PAD = "stablehlo.dynamic_pad %a, %b, %n, %n, %n"
ENDS = "%e = stablehlo.constant dense<5> : tensor<1xi32>\n%t = stablehlo.constant dense<2> : tensor<1xi32>\n"
SPREAD = "stablehlo.dynamic_broadcast_in_dim %a, %s, dims = [1] : (tensor<3xf32>, tensor<2xi32>) -> "
CONV = "stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {}"
ONE = "{batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
T, X, Y = "tensor<2x3xf32>", randn(3), randn(6)
# The comparator treats all zeros as equal. It reads a constant from outside.
SORT = """%k = stablehlo.constant dense<0.0> : tensor<f32>
%0 = "stablehlo.sort"(%a) ({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %l = stablehlo.compare EQ, %x, %k : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %m = stablehlo.select %l, %k, %x : tensor<i1>, tensor<f32>
  %r = stablehlo.compare EQ, %y, %k : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %q = stablehlo.select %r, %k, %y : tensor<i1>, tensor<f32>
  %p = stablehlo.compare LT, %m, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
}) {dimension = 0 : i64, is_stable = true} : (tensor<6xf32>) -> tensor<6xf32>"""
PROGRAMS = [
    Program("broadcast", f"{SIZES}%0 = {SPREAD}{T}", f"%0 : {T}", (X,), lambda x: x.expand(2, 3)),
    Program(
        "open on the way",
        f"{SIZES}%1 = {SPREAD}tensor<?x?xf32>\n%0 = stablehlo.add %1, %1 : tensor<?x?xf32>",
        "%0 : tensor<?x?xf32>",
        (X,),
        lambda x: 2 * x.expand(2, 3),
    ),
    Program(
        "broadcast by an argument",
        f"%0 = {SPREAD.replace('%s', '%b')}{T}",
        f"%0 : {T}",
        (X, i32(2, 3)),
        lambda x, _: x.expand(2, 3),
    ),
    Program(
        "reshape",
        f"{SIZES}%0 = stablehlo.dynamic_reshape %a, %s : (tensor<6xf32>, tensor<2xi32>) -> {T}",
        f"%0 : {T}",
        (Y,),
        lambda x: x.reshape(2, 3),
    ),
    Program(
        "pad",
        f"{SIZES}%0 = {PAD} : (tensor<3xf32>, tensor<f32>{', tensor<1xi32>' * 3}) -> tensor<7xf32>",
        "%0 : tensor<7xf32>",
        (X, torch.tensor(2.5)),
        lambda x, v: torch.stack([v, x[0], v, x[1], v, x[2], v]),
    ),
    Program(
        "slice",
        f"{SIZES}{ENDS}%0 = {SLICE} : (tensor<6xf32>{', tensor<1xi32>' * 3}) -> tensor<2xf32>",
        "%0 : tensor<2xf32>",
        (Y,),
        lambda x: x[1:5:2],
    ),
    Program(
        "convolution without results",
        f"%0 = {CONV} {ONE} : (tensor<1x1x2xf32>, tensor<1x1x3xf32>) -> tensor<1x1x0xf32>",
        "%0 : tensor<1x1x0xf32>",
        (randn(1, 1, 2), randn(1, 1, 3)),
        lambda x, w: torch.zeros(1, 1, 0),
    ),
    Program(
        "convolution without channels",
        f"%0 = {CONV} {ONE} : (tensor<1x0x4xf32>, tensor<1x0x3xf32>) -> tensor<1x1x2xf32>",
        "%0 : tensor<1x1x2xf32>",
        (randn(1, 0, 4), randn(1, 0, 3)),
        lambda x, w: torch.zeros(1, 1, 2),
    ),
    Program("sort with a constant from outside", SORT, "%0 : tensor<6xf32>", (Y,), lambda x: x.sort()[0]),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_program(program: Program) -> None:
    check(program)


def test_a_comparator_that_changes_other_numbers_is_refused() -> None:
    """The positive numbers are equal here, so the order is not that of the numbers."""
    other = Program("sort", SORT.replace("EQ", "GT"), "%0 : tensor<6xf32>", (Y,), lambda x: x)
    with pytest.raises(UnsupportedOpError, match=r"^stablehlo\.sort is not supported"):
        run(other)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "func.func @main(%a: tensor<2x?xf32>) -> tensor<2x?xf32> { return %a : tensor<2x?xf32> }",
            r"(?s)^func\.func is not.*argument 0 of main has the type tensor<2x\?xf32>; give it fixed sizes",
        ),
        (
            "func.func @main(%a: tensor<3xf32>, %s: tensor<2xi32>) -> tensor<?x3xf32> {\n"
            f"%0 = {SPREAD}tensor<?x3xf32>\nreturn %0 : tensor<?x3xf32> }}",
            r"(?s)^stablehlo\.dynamic_broadcast_in_dim is not.*expected results whose sizes are constants",
        ),
    ],
    ids=["argument", "result"],
)
def test_open_sizes_are_refused(text: str, message: str) -> None:
    with make_context(), pytest.raises(UnsupportedOpError, match=message):
        compile_module(ir.Module.parse(text), CompilerConfig())


def test_open_arguments_are_refused_at_the_door() -> None:
    text = "func.func @main(%a: tensor<2x?xf32>) -> tensor<2x?xf32> { return %a : tensor<2x?xf32> }"
    with pytest.raises(CompileError, match=r"argument 0 .* dimension 1 of its type tensor<2x\?xf32> is open"):
        tt_torch.compile_stablehlo(text)

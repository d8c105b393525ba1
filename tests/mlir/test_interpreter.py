"""Compiled StableHLO programs compute the same as StableHLO's own interpreter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from interpreter import check

from tt_torch.mlir.context import make_context
from tt_torch.mlir.ttir import dialect as ttir
from tt_torch.mlir.ttir.from_stablehlo.elementwise import UNARY

FILES = (Path(__file__).parents[1] / "ir" / "ttir" / "from_stablehlo").glob("*.mlir")
# Ops that the interpreter does not know. The last two take their indices only from PyTorch.
UNKNOWN = re.compile(
    "custom_call|composite|all_reduce|batch_norm|stablehlo.rng|stablehlo.dot |broadcast_compare|complex|f16|index_put"
    "|aten.gather"
)


def modules() -> list[object]:
    found = []
    for file in sorted(FILES):
        parts = re.split(r"^// -----$", file.read_text(), flags=re.MULTILINE)
        found += [pytest.param(part, id=f"{file.stem}-{i}") for i, part in enumerate(parts)]
    return [m for m in found if "invalid" not in m.id and not UNKNOWN.search(m.values[0]) and "@main" in m.values[0]]


@pytest.mark.parametrize("text", modules())
def test_modules_of_the_ir_tests(text: str) -> None:
    check(text)


def reduced(kind: str, combine: str, initial: str, dims: str, result: str) -> str:
    return (
        f"%i = stablehlo.constant dense<{initial}> : tensor<{kind}>\n"
        f"%0 = stablehlo.reduce(%a init: %i) applies stablehlo.{combine} across dimensions = {dims}"
        f" : (tensor<4x5x{kind}>, tensor<{kind}>) -> tensor<{result}>"
    )


def window(kind: str, shape: str, combine: str, initial: str, attributes: str, result: str) -> str:
    return (
        f"%i = stablehlo.constant dense<{initial}> : tensor<{kind}>\n"
        f'%0 = "stablehlo.reduce_window"(%a, %i) ({{\n^bb0(%x: tensor<{kind}>, %y: tensor<{kind}>):\n'
        f"  %c = stablehlo.{combine} %x, %y : tensor<{kind}>\n  stablehlo.return %c : tensor<{kind}>\n}})"
        f" {{{attributes}}} : (tensor<{shape}x{kind}>, tensor<{kind}>) -> tensor<{result}x{kind}>"
    )


def extreme(direction: str, positions: str) -> str:
    """A maximum or minimum of each row with its position. `positions` is the op `%n` that numbers the columns."""
    initial = "0xFF800000" if direction[0] == "G" else "0x7F800000"
    return f"""
  %low = stablehlo.constant dense<{initial}> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  {positions}
  %0:2 = stablehlo.reduce(%a init: %low), (%n init: %zero) across dimensions = [1]
    : (tensor<4x5xf32>, tensor<4x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
    reducer(%x: tensor<f32>, %y: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {{
      %1 = stablehlo.compare {direction}, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %2 = stablehlo.select %1, %x, %y : tensor<i1>, tensor<f32>
      %3 = stablehlo.select %1, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
    }}"""


def elementwise(kind: str, binary: str, unary: str) -> tuple[str, str, str]:
    """Arguments, body and results of a program that applies each op to `%a`, or to `%a` and `%b`."""
    own, bits = f"tensor<{kind}>", f"tensor<{kind.rsplit('x', 1)[0]}xi1>"
    lines = [f"stablehlo.{name} %a, %b : {own}" for name in binary.split()]
    lines += [f"stablehlo.{name} %a : {own}" for name in unary.split() if name != "is_finite"]
    types = [own] * len(lines)
    if "is_finite" in unary:
        lines, types = [*lines, f"stablehlo.is_finite %a : ({own}) -> {bits}"], [*types, bits]
    body = "\n".join(f"%{i} = {line}" for i, line in enumerate(lines))
    return f"%a: {own}, %b: {own}", body, f"{', '.join(f'%{i}' for i in range(len(lines)))} : {', '.join(types)}"


def unary_ops() -> str:
    """The unary ops of StableHLO that become a unary op of TTIR, except the ops for positive numbers."""
    names = sorted({f"stablehlo.{name}" for name in ttir.UNARY} | UNARY.keys())
    context = make_context()
    names = [name.removeprefix("stablehlo.") for name in names if context.is_registered_operation(name)]
    return " ".join(name for name in names if name not in ("log", "log_plus_one", "rsqrt", "sqrt"))


ROWS = "%v = stablehlo.iota dim = 0 : tensor<5xi32>\n"
COUNTED = {
    "iota": "%n = stablehlo.iota dim = 1 : tensor<4x5xi32>",
    "broadcast": ROWS + "%n = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<5xi32>) -> tensor<4x5xi32>",
    "reshape": ROWS
    + "%r = stablehlo.reshape %v : (tensor<5xi32>) -> tensor<1x5xi32>\n"
    + "%n = stablehlo.broadcast_in_dim %r, dims = [0, 1] : (tensor<1x5xi32>) -> tensor<4x5xi32>",
}
F, N = "tensor<4x5xf32>", "tensor<4x5xi32>"
AHEAD = "window_dimensions = array<i64: 1, 5>, padding = dense<[[0, 0], [0, 4]]> : tensor<2x2xi64>"
BEHIND = "window_dimensions = array<i64: 4, 1>, padding = dense<[[3, 0], [0, 0]]> : tensor<2x2xi64>"
PAIRS = "window_dimensions = array<i64: 1, 1, 2, 3>, window_strides = array<i64: 1, 1, 2, 1>"
UNEVEN = (
    "window_dimensions = array<i64: 1, 1, 2, 3>, padding = dense<[[0, 0], [0, 0], [1, 0], [0, 2]]> : tensor<4x2xi64>"
)
SPREAD = "window_dimensions = array<i64: 1, 1, 2, 2>, window_dilations = array<i64: 1, 1, 2, 1>"
LOW, HIGH = "0xFF800000", "0x7F800000"
# Arguments, body and results of each program.
PROGRAMS: dict[str, tuple[str, str, str]] = {
    **{
        f"reduce {combine} of {kind}": (
            f"%a: tensor<4x5x{kind}>",
            reduced(kind, combine, initial, "[0]", f"5x{kind}"),
            f"%0 : tensor<5x{kind}>",
        )
        for kind, combine, initial in (
            ("f32", "add", "0.0"),
            ("f32", "multiply", "1.0"),
            ("f32", "maximum", LOW),
            ("f32", "minimum", HIGH),
            ("i32", "add", "0"),
            ("i32", "maximum", "-2147483648"),
            ("i32", "minimum", "2147483647"),
            ("ui8", "maximum", "0"),
            ("ui8", "minimum", "255"),
            ("i1", "and", "true"),
            ("i1", "or", "false"),
        )
    },
    "reduce over all": (f"%a: {F}", reduced("f32", "add", "0.0", "[0, 1]", "f32"), "%0 : tensor<f32>"),
    "reduce over nothing": (f"%a: {F}", reduced("f32", "add", "0.0", "[]", "4x5xf32"), f"%0 : {F}"),
    **{
        f"position {direction} {name}": (
            f"%a: {F}",
            extreme(direction, counted),
            "%0#0, %0#1 : tensor<4xf32>, tensor<4xi32>",
        )
        for direction in ("GE", "GT", "LE", "LT")
        for name, counted in COUNTED.items()
    },
    **{
        f"window {name}": (
            f"%a: tensor<{shape}xf32>",
            window("f32", shape, combine, initial, attributes, result),
            f"%0 : tensor<{result}xf32>",
        )
        for name, shape, combine, initial, attributes, result in (
            ("add ahead", "4x5", "add", "0.0", AHEAD, "4x5"),
            ("add behind", "4x5", "add", "0.0", BEHIND, "4x5"),
            ("multiply behind", "4x5", "multiply", "1.0", BEHIND, "4x5"),
            ("multiply ahead", "4x5", "multiply", "1.0", AHEAD, "4x5"),
            ("maximum ahead", "4x5", "maximum", LOW, AHEAD, "4x5"),
            ("minimum behind", "4x5", "minimum", HIGH, BEHIND, "4x5"),
            ("add of pairs", "2x3x6x7", "add", "0.0", PAIRS, "2x3x3x5"),
            ("maximum of pairs", "2x3x6x7", "maximum", LOW, PAIRS, "2x3x3x5"),
            ("minimum of pairs", "2x3x6x7", "minimum", HIGH, PAIRS, "2x3x3x5"),
            ("add uneven", "2x3x6x7", "add", "0.0", UNEVEN, "2x3x6x7"),
            ("maximum uneven", "2x3x6x7", "maximum", LOW, UNEVEN, "2x3x6x7"),
            ("maximum spread", "2x3x6x7", "maximum", LOW, SPREAD, "2x3x4x6"),
            ("maximum of one row of five", "5", "maximum", LOW, "window_dimensions = array<i64: 2>", "4"),
            ("add of three dimensions", "3x4x5", "add", "0.0", "window_dimensions = array<i64: 2, 2, 3>", "2x3x3"),
        )
    },
    "window minimum of integers": (
        f"%a: {N}",
        window("i32", "4x5", "minimum", "2147483647", BEHIND, "4x5"),
        f"%0 : {N}",
    ),
    "window add of integers": (f"%a: {N}", window("i32", "4x5", "add", "0", BEHIND, "4x5"), f"%0 : {N}"),
    "square": (f"%a: {F}", f"%0 = chlo.square %a : {F} -> {F}", f"%0 : {F}"),
    "update of all": (
        f"%a: {F}, %b: {F}, %c: tensor<i32>",
        f"%0 = stablehlo.dynamic_update_slice %a, %b, %c, %c : ({F}, {F}, tensor<i32>, tensor<i32>) -> {F}",
        f"%0 : {F}",
    ),
    "integers": elementwise("4x5xi32", "and or xor multiply maximum minimum subtract add", "not sign abs negate"),
    "floats": elementwise(
        "4x5xf32",
        "atan2 divide remainder add subtract multiply maximum minimum",
        f"{unary_ops()} round_nearest_afz round_nearest_even",
    ),
    "booleans": elementwise("8xi1", "and or xor", "not"),
    "positive floats": (
        f"%a: {F}, %b: {F}",
        f"%x = stablehlo.abs %a : {F}\n%0 = stablehlo.power %x, %b : {F}\n%1 = stablehlo.log_plus_one %x : {F}\n"
        f"%2 = stablehlo.rsqrt %x : {F}\n%3 = stablehlo.log %x : {F}\n%4 = stablehlo.sqrt %x : {F}",
        f"%0, %1, %2, %3, %4 : {F}, {F}, {F}, {F}, {F}",
    ),
    "comparisons": (
        f"%a: {N}, %b: {N}",
        "\n".join(
            f"%{i} = stablehlo.compare {direction}, %a, %b : ({N}, {N}) -> tensor<4x5xi1>"
            for i, direction in enumerate(("EQ", "NE", "GE", "GT", "LE", "LT"))
        ),
        "%0, %1, %2, %3, %4, %5 : " + ", ".join(["tensor<4x5xi1>"] * 6),
    ),
    "conversions": (
        "%a: tensor<8xf32>, %n: tensor<8xi32>, %u: tensor<8xui8>",
        """
        %s = stablehlo.constant dense<7.3> : tensor<8xf32>
        %m = stablehlo.multiply %a, %s : tensor<8xf32>
        %0 = stablehlo.convert %m : (tensor<8xf32>) -> tensor<8xi32>
        %1 = stablehlo.convert %n : (tensor<8xi32>) -> tensor<8xf32>
        %2 = stablehlo.convert %u : (tensor<8xui8>) -> tensor<8xi32>
        %3 = stablehlo.convert %u : (tensor<8xui8>) -> tensor<8xf32>
        %4 = stablehlo.convert %n : (tensor<8xi32>) -> tensor<8xi1>
        %5 = stablehlo.convert %4 : (tensor<8xi1>) -> tensor<8xi32>""",
        "%0, %1, %2, %3, %4, %5 : "
        "tensor<8xi32>, tensor<8xf32>, tensor<8xi32>, tensor<8xf32>, tensor<8xi1>, tensor<8xi32>",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    arguments, body, results = PROGRAMS[name]
    text = f"func.func @main({arguments}) -> ({results.split(' : ')[1]}) {{\n{body}\nreturn {results}\n}}"
    check(text)

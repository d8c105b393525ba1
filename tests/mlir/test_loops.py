"""Loops of StableHLO whose number of steps is known, against the interpreter; others are refused by name."""

from __future__ import annotations

import pytest
import torch
from interpreter import compiled

import tt_torch
from tt_torch.bringup.interpret import evaluate
from tt_torch.errors import UnsupportedOpError

COUNTED = """
func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<{kind}>) {{
  %first = stablehlo.constant dense<{first}> : tensor<{kind}>
  %step = stablehlo.constant dense<{step}> : tensor<{kind}>
  %end = stablehlo.constant dense<{end}> : tensor<{kind}>
  %r:2 = stablehlo.while(%i = %first, %v = %x) : tensor<{kind}>, tensor<2xf32>
    cond {{
      %c = stablehlo.compare {direction}, %i, %end : (tensor<{kind}>, tensor<{kind}>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }} do {{
      %j = stablehlo.add %i, %step : tensor<{kind}>
      %f = stablehlo.convert %i : (tensor<{kind}>) -> tensor<f32>
      %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<2xf32>
      %m = stablehlo.multiply %v, %x : tensor<2xf32>
      %w = stablehlo.add %m, %b : tensor<2xf32>
      stablehlo.return %j, %w : tensor<{kind}>, tensor<2xf32>
    }}
  return %r#1, %r#0 : tensor<2xf32>, tensor<{kind}>
}}"""
# type, first, step, end, direction: also counters that wrap, and loops without a step
COUNTERS = [
    ("i32", 0, 1, 5, "LT"),
    ("i32", 5, -2, 0, "GE"),
    ("i32", 3, 1, 3, "LT"),
    ("ui8", 250, 3, 5, "NE"),
    ("i8", 120, 3, -100, "GT"),
    ("i32", 2147483646, 1, 0, "GT"),
    ("i64", 4, -1, 1, "NE"),
]


def text(counter: tuple[str, int, int, int, str]) -> str:
    return COUNTED.format(**dict(zip(("kind", "first", "step", "end", "direction"), counter, strict=True)))


@pytest.mark.filterwarnings("error")  # for example, NumPy's warning of a counter that wraps
@pytest.mark.parametrize("counter", COUNTERS, ids=str)
def test_counted_loops(counter: tuple[str, int, int, int, str]) -> None:
    x = torch.tensor([0.5, -0.25])
    for got, expected in zip(tt_torch.compile_stablehlo(text(counter))(x), evaluate(text(counter), [x]), strict=True):
        torch.testing.assert_close(got, expected)


NESTED = """
func.func @main(%x: tensor<4xf32>, %flag: tensor<i1>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %0 = "stablehlo.if"(%flag) ({
    %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<4xf32>
      cond {
        %c = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %s:2 = stablehlo.while(%k = %i, %w = %v) : tensor<i32>, tensor<4xf32>
          cond {
            %c = stablehlo.compare LT, %k, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %c : tensor<i1>
          } do {
            %e = stablehlo.dynamic_slice %x, %k, sizes = [1] : (tensor<4xf32>, tensor<i32>) -> tensor<1xf32>
            %b = stablehlo.broadcast_in_dim %e, dims = [0] : (tensor<1xf32>) -> tensor<4xf32>
            %m = stablehlo.add %w, %b : tensor<4xf32>
            %u = func.call @turn(%m) : (tensor<4xf32>) -> tensor<4xf32>
            %l = stablehlo.add %k, %one : tensor<i32>
            stablehlo.return %l, %u : tensor<i32>, tensor<4xf32>
          }
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %s#1 : tensor<i32>, tensor<4xf32>
      }
    stablehlo.return %r#1 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @turn(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.reverse %x, dims = [0] : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


def test_loops_inside_branches_and_loops_that_begin_at_the_counter_of_another_one() -> None:
    x, model = torch.randn(4), tt_torch.compile_stablehlo(NESTED)
    for flag in (True, False):
        (expected,) = evaluate(NESTED, [x, torch.tensor(flag)])
        torch.testing.assert_close(model(x, torch.tensor(flag)), expected)


def test_a_counter_of_many_shared_terms_takes_no_time() -> None:
    """Each term adds the term before it to itself, so 2**60 paths lead to the first term."""
    terms = "\n".join(f"%t{i + 1} = stablehlo.add %t{i}, %t{i} : tensor<i32>" for i in range(60))
    end = f"%t0 = stablehlo.constant dense<3> : tensor<i32>\n{terms}\n%end = stablehlo.subtract %t0, %t60 : tensor<i32>"
    counted = text(("i32", 0, 1, 3, "LT")).replace("%end = stablehlo.constant dense<3> : tensor<i32>", end)
    x = torch.ones(2)
    torch.testing.assert_close(tt_torch.compile_stablehlo(counted)(x)[0], torch.full((2,), 4.0))


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (text(("i32", 0, 1, 10**6, "LT")), "it has more than 8,192 steps"),
        (text(("i32", 0, 0, 1, "LT")), "it has more than 8,192 steps"),
        (text(("i32", 0, 1, 3000, "LT")), "its 3,000 steps of 6 ops are more than 8,192 ops"),
        (text(("f32", 0.0, 1.0, 3.0, "LT")), "its number of steps is not a constant: it depends on stablehlo.constant"),
        (
            text(("i32", 0, 1, 3, "LT")).replace("(%x: tensor<2xf32>)", "(%x: tensor<2xf32>, %n: tensor<i32>)")
            .replace("%i, %end", "%i, %n"), "it depends on an argument",
        ),
    ],
)  # fmt: skip
def test_one_program_has_no_other_loops(program: str, said: str) -> None:
    """A model with another loop has several programs: see test_splitting.py."""
    with pytest.raises(UnsupportedOpError, match=f"(?s)^stablehlo.while is not supported.*{said}"):
        compiled(program, [])

"""Scatters with bodies of several ops, or of several operands, if no element is written twice; and large ones."""

from __future__ import annotations

import warnings

import pytest
import torch

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.dynamo.decompositions import segments
from tt_torch.errors import UnsupportedOpError

X, Y = torch.arange(12.0).reshape(4, 3) - 5, torch.linspace(-1, 1, 12).reshape(4, 3)
ROWS = "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
BOX = "update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 0"
T, F = "tensor<4x3xf32>", "tensor<f32>"


def square_times(numbers: str, indices: str, updates: str, more: str) -> str:
    """A program that writes the square of an element times the update."""
    return f"""func.func @main(%x: {T}, %i: {indices}, %u: {updates}) -> {T} {{
      %0 = "stablehlo.scatter"(%x, %i, %u) ({{
      ^bb0(%a: {F}, %b: {F}):
        %s = stablehlo.multiply %a, %a : {F}
        %r = stablehlo.multiply %s, %b : {F}
        stablehlo.return %r : {F}
      }}) {{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>{more}}} : ({T}, {indices}, {updates}) -> {T}
      return %0 : {T} }}"""


def test_rows_that_differ() -> None:
    model = tt_torch.compile_stablehlo(
        square_times(ROWS, "tensor<3x1xi32>", "tensor<3x3xf32>", ", unique_indices = true")
    )
    expected = X.clone()
    expected[[2, 0]] = X[[2, 0]] ** 2 * Y[:2]
    torch.testing.assert_close(model(X, torch.tensor([[2], [0], [9]], dtype=torch.int32), Y[:3]), expected)


def test_one_window() -> None:
    model = tt_torch.compile_stablehlo(square_times(BOX, "tensor<2xi32>", "tensor<2x2xf32>", ""))
    expected = X.clone()
    expected[2:, 1:] = X[2:, 1:] ** 2 * Y[:2, :2]
    torch.testing.assert_close(model(X, torch.tensor([2, 1], dtype=torch.int32), Y[:2, :2]), expected)
    outside = torch.tensor([3, 1], dtype=torch.int32)  # the whole window is dropped
    torch.testing.assert_close(model(X, outside, Y[:2, :2]), X)


def test_two_operands() -> None:
    text = f"""func.func @main(%x: {T}, %y: {T}, %i: tensor<2x1xi32>, %u: tensor<2x3xf32>) -> ({T}, {T}) {{
      %0:2 = "stablehlo.scatter"(%x, %y, %i, %u, %u) ({{
      ^bb0(%a: {F}, %b: {F}, %c: {F}, %d: {F}):
        %s = stablehlo.subtract %b, %c : {F}
        %r = stablehlo.multiply %a, %d : {F}
        stablehlo.return %s, %r : {F}, {F}
      }}) {{scatter_dimension_numbers = #stablehlo.scatter<{ROWS}>, unique_indices = true}}
        : ({T}, {T}, tensor<2x1xi32>, tensor<2x3xf32>, tensor<2x3xf32>) -> ({T}, {T})
      return %0#0, %0#1 : {T}, {T} }}"""
    first, second = X.clone(), Y.clone()
    first[[3, 1]], second[[3, 1]] = Y[[3, 1]] - Y[:2] * 3, X[[3, 1]] * (Y[:2] * 3)
    indices = torch.tensor([[3], [1]], dtype=torch.int32)
    got = tt_torch.compile_stablehlo(text)(X, Y, indices, Y[:2] * 3)
    torch.testing.assert_close(got, (first, second))


def test_an_order_that_matters_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match=r"stablehlo\.scatter"):
        tt_torch.compile_stablehlo(square_times(ROWS, "tensor<3x1xi32>", "tensor<3x3xf32>", ""))


@pytest.mark.parametrize(("kind", "dtype"), [("f32", torch.float32), ("bf16", torch.bfloat16), ("i1", torch.bool)])
@pytest.mark.parametrize("on_host", [False, True])
def test_the_host_computes_what_compares_many_pairs(
    monkeypatch: pytest.MonkeyPatch, kind: str, dtype: torch.dtype, on_host: bool
) -> None:
    """Each of 12 elements is compared with the three that are written to its column."""
    monkeypatch.setattr(segments, "LARGEST_PAIRS", 35 if on_host else 36)
    whole, rows, body = f"tensor<4x3x{kind}>", f"tensor<3x3x{kind}>", f"tensor<{kind}>"
    text = f"""func.func @main(%x: {whole}, %i: tensor<3x1xi32>, %u: {rows}) -> {whole} {{
      %0 = "stablehlo.scatter"(%x, %i, %u) ({{
      ^bb0(%a: {body}, %b: {body}):
        %r = stablehlo.maximum %a, %b : {body}
        stablehlo.return %r : {body}
      }}) {{scatter_dimension_numbers = #stablehlo.scatter<{ROWS}>}} : ({whole}, tensor<3x1xi32>, {rows}) -> {whole}
      return %0 : {whole} }}"""
    x, updates = (X > 0, Y > 0) if kind == "i1" else (X.to(dtype), (Y * 6).to(dtype))
    expected = x.clone()
    expected[2] = torch.maximum(torch.maximum(x[2], updates[0]), updates[1])
    indices = torch.tensor([[2], [2], [9]], dtype=torch.int32)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.testing.assert_close(tt_torch.compile_stablehlo(text)(x, indices, updates[:3]), expected)
    assert any(issubclass(each.category, HostFallbackWarning) for each in caught) == on_host
    if on_host:
        with pytest.raises(UnsupportedOpError, match=r"stablehlo\.scatter"):
            tt_torch.compile_stablehlo(text, CompilerConfig(fallback="error"))

"""Convolutions that Tenstorrent's library refuses or treats otherwise, at the limits of the conditions, and reductions
that start at the ends of their types."""

from __future__ import annotations

from typing import Any

import pytest
from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.mlir import pipeline
from tt_torch.mlir.context import context_to_compile
from tt_torch.mlir.ttir.from_stablehlo.reduction import ENDS
from tt_torch.mlir.ttnn import windows

WHOLE: dict[str, Any] = {
    "batch_size": 1,
    "input_height": 16,
    "input_width": 2,
    "in_channels": 4,
    "out_channels": 4,
    "groups": 1,
    "kernel_size": [3, 3],
    "stride": [1, 1],
    "padding": [1, 1, 1, 1],
    "dilation": [1, 1],
}
ONE_COLUMN: dict[str, Any] = {"kernel_size": [3, 1], "padding": [1, 1, 0, 0]}


@pytest.mark.parametrize(
    ("changed", "narrow"),
    [
        ({}, True),
        ({"input_width": 1}, True),
        ({"input_width": 3}, False),
        ({"input_height": 15}, False),
        ({"input_height": 8, "batch_size": 2}, True),
        ({"input_height": 7, "batch_size": 2}, False),
        (ONE_COLUMN, False),  # the image is read in one run
        (ONE_COLUMN | {"stride": [2, 1], "input_height": 32}, True),
        (ONE_COLUMN | {"stride": [1, 2], "input_width": 4}, False),
        (ONE_COLUMN | {"stride": [1, 2], "input_width": 3}, True),
        (ONE_COLUMN | {"padding": [1, 1, 1, 0], "input_width": 1}, False),
        (ONE_COLUMN | {"padding": [1, 1, 0, 1], "input_width": 1}, False),
    ],
)
def test_images_that_are_too_narrow(changed: dict[str, Any], narrow: bool) -> None:
    assert windows.too_narrow(WHOLE | changed) == narrow


@pytest.mark.parametrize(
    ("changed", "narrow"),
    [
        ({}, True),
        ({"input_height": 15}, False),
        ({"input_width": 3}, False),
        ({"kernel_size": [3, 1], "padding": [1, 0]}, False),
    ],
)
def test_transposed_images_that_are_too_narrow(changed: dict[str, Any], narrow: bool) -> None:
    attributes = WHOLE | {"padding": [1, 1], "output_padding": [0, 0]} | changed
    assert windows.transposed_too_narrow(attributes) == narrow


@pytest.mark.parametrize(
    ("changed", "other"),
    [
        ({}, True),
        ({"input_height": 2}, False),
        ({"kernel_size": [3, 3]}, False),
        ({"kernel_size": [3, 1]}, False),
        ({"groups": 2}, False),
        ({"out_channels": 8}, False),
    ],
)
def test_weights_that_are_prepared_as_one_row_per_channel(changed: dict[str, Any], other: bool) -> None:
    attributes = WHOLE | {"input_height": 1, "kernel_size": [1, 3], "groups": 4} | changed
    assert windows.one_row_per_channel(attributes, None) == other


@pytest.mark.parametrize("kind", ["f32", "bf16", "i32", "ui8"])  # a reduction widens all other types; a pool does not
@pytest.mark.parametrize("op", ["maximum", "minimum"])
@pytest.mark.parametrize("inside", [False, True])
def test_a_reduction_from_the_end_of_its_type_is_one_op(kind: str, op: str, inside: bool) -> None:
    end = ENDS[kind][op == "minimum"]
    start = (end / 2 if "f" in kind else end // 2 + 1) if inside else end
    text = f"""func.func @main(%x: tensor<4x5x{kind}>) -> tensor<4x{kind}> {{
      %start = stablehlo.constant dense<{start}> : tensor<{kind}>
      %0 = stablehlo.reduce(%x init: %start) applies stablehlo.{op} across dimensions = [1]
        : (tensor<4x5x{kind}>, tensor<{kind}>) -> tensor<4x{kind}>
      return %0 : tensor<4x{kind}>
    }}"""
    with context_to_compile():
        module = ir.Module.parse(text)
        pipeline.run_steps(module, pipeline.TO_TTIR, CompilerConfig(), pipeline.Timings())
        assert (f"ttir.{op}" in str(module)) == inside

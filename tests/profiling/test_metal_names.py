"""Names of device ops as tt-metal's profiler has them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tt_torch.profiling.metal_names import _NAMES, metal_name
from tt_torch.wire import schema


def op(name: str, *tiled: bool) -> SimpleNamespace:
    return SimpleNamespace(name=name, results=[SimpleNamespace(tiled=one) for one in tiled])


@pytest.mark.parametrize(
    ("table", "name"),
    [
        (op("MatmulOp", True), "MatmulDeviceOperation"),
        (op("LinearOp", True), "MatmulDeviceOperation"),
        (op("Conv2dOp", True), "Conv2dDeviceOperation"),
        (op("EltwiseBinaryOp", True), "BinaryNgDeviceOperation"),
        (op("SoftmaxOp", True), "SoftmaxDeviceOperation"),
        (op("CumSumOp", True), "AccumulationDeviceOperation"),
        (op("ToLayoutOp", True), "TilizeDeviceOperation"),
        (op("ToLayoutOp", False), "UntilizeDeviceOperation"),
        (op("ToDeviceOp", True), "ToDeviceOp"),
    ],
)
def test_a_name(table: SimpleNamespace, name: str):
    assert metal_name(table) == name


def test_the_table_has_names_of_the_format_only():
    tables = {table.rpartition(".")[2] for table in schema.load().tables}
    assert set(_NAMES) <= tables, set(_NAMES) - tables

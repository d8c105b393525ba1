"""Every program of the op table and of small models is one that Tenstorrent's library takes.

Minutes on two cores, hence a marker of its own: `pytest -m conformance`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from op_rows import Row, draw
from op_table import FAMILIES
from torch import nn

import tt_torch
from tt_torch.codegen import environment
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.dynamo.backend import Observer, compile_captured

pytestmark = [pytest.mark.conformance, pytest.mark.needs_ttnn, pytest.mark.slow]

ARCHS = environment.DEVICES


def cases() -> Iterator[Any]:
    """Each row in each of its types, on the devices in turn. CI leaves all types of a row but one out."""
    rows = [row for family in FAMILIES.values() for row in family]
    for i, row in enumerate(rows):
        for k, dtype in enumerate(row.dtypes):
            marks = [] if k == i % len(row.dtypes) else [pytest.mark.every_type]
            yield pytest.param(row, dtype, list(ARCHS)[(i + k) % 2], marks=marks, id=f"{row.name}-{str(dtype)[6:]}")


def programs(row: Row, dtype: torch.dtype, config: CompilerConfig) -> list[bytes]:
    inputs = [draw(i, dtype) if isinstance(i, tuple) else i(dtype) for i in row.inputs]
    made: list = []

    def record(gm, arguments):
        return compile_captured(
            gm, arguments, BackendOptions(compiler_config=config), Observer(made.append, flag=False)
        )

    torch._dynamo.reset()
    torch.compile(row.fn, backend=record, fullgraph=True, dynamic=False)(*inputs)
    return [executor.binary for executor in made]


def failures(checker, binaries: list[bytes]) -> list[tuple[str, ...]]:
    found = (v for binary in binaries for v in checker.check(binary).failures)
    return [(v.op, *v.differences, v.code) for v in found]


@pytest.mark.parametrize(("row", "dtype", "device"), cases())
def test_op_table(row, dtype, device, checkers):
    assert failures(checkers(device), programs(row, dtype, CompilerConfig(arch=ARCHS[device]))) == []


MODELS = {
    "matmul": (lambda: nn.Linear(64, 32, bias=False), (8, 64)),
    "linear": (lambda: nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 10)), (8, 64)),
    "conv": (lambda: nn.Conv2d(8, 16, 3, padding=1), (2, 8, 12, 12)),
    "conv 1x1": (lambda: nn.Conv2d(32, 64, 1), (1, 32, 8, 8)),
    "depthwise": (lambda: nn.Conv2d(8, 8, 3, padding=1, groups=8), (1, 8, 12, 12)),
}


@pytest.mark.parametrize("device", environment.DEVICES)
@pytest.mark.parametrize("options", [{}, {"dtype": "bf16"}, {"dtype": "bf16", "weight_dtype": "bfp8_b"}], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_layers(name, options, device, checkers):
    make, shape = MODELS[name]
    config = CompilerConfig(arch=ARCHS[device], **options)
    binary = tt_torch.compile_model(make().eval(), (torch.randn(shape),), config).binary
    assert failures(checkers(device), [binary]) == []


@pytest.mark.parametrize("device", environment.DEVICES)
@pytest.mark.parametrize("dtype", [None, "bf16"])
def test_models(dtype, device, checkers):
    """The demos' models: a residual network and an encoder, with all kinds of their layers."""
    transformers = pytest.importorskip("transformers")
    config = CompilerConfig(dtype=dtype, arch=ARCHS[device])
    residual = transformers.ResNetForImageClassification(transformers.ResNetConfig(depths=[1, 1, 1, 1])).eval()
    encoder = transformers.BertModel(transformers.BertConfig(num_hidden_layers=2)).eval()
    for model, inputs in ((residual, torch.randn(1, 3, 224, 224)), (encoder, torch.randint(0, 1000, (1, 128)))):
        binary = tt_torch.compile_model(model, (inputs,), config).binary
        assert failures(checkers(device), [binary]) == []

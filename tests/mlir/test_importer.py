"""The FX node's name and the user's source line reach the binary with every op."""

from __future__ import annotations

import inspect
import re

import torch

import tt_torch
from tt_torch.config import CompileDepth, CompilerConfig
from tt_torch.driver.compile import compile_graph
from tt_torch.torch_private.tracing import make_fx
from tt_torch.wire.decode import decode
from tt_torch.wire.facts import ops

aten = torch.ops.aten


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x):
        y = self.linear(x)
        return torch.nn.functional.layer_norm(y, (4,)) * torch.cos(x[:, :4])


def test_locations_reach_the_binary():
    compiled = tt_torch.compile_model(Small().eval(), (torch.randn(2, 8),))
    locations = {op.name: op.location for op in ops(decode(compiled.binary)["programs"][0])}
    for table, node in [("LinearOp", "addmm"), ("LayerNormOp", "layer_norm"), ("SliceOp", "slice")]:
        assert re.match(rf'loc\("{node}\w*: ', locations[table]), locations[table]
        assert f'"{__file__}":' in locations[table]
    first = inspect.getsourcelines(Small.forward)[1]
    assert f'"{__file__}":{first + 1}:' in locations["LinearOp"]
    assert f'"{__file__}":{first + 2}:' in locations["LayerNormOp"]


def test_sorts_of_composites_are_stable():
    """torch-mlir's sorts may reorder equal elements. This also holds inside of other decompositions."""
    gm = make_fx(lambda x: aten.sort.stable(x, stable=True), tracing_mode="fake")(torch.ones(4))
    texts = []
    config = CompilerConfig(compile_depth=CompileDepth.STABLEHLO)
    compile_graph(gm, ["input"], config, lambda level, form: texts.append(str(form)) if level == "STABLEHLO" else None)
    (text,) = texts
    assert text.count('"stablehlo.sort"(') == text.count("is_stable = true") == 1
    assert "stablehlo.composite" in text

"""Permutes between chips, in the memory of Tenstorrent's library: a transfer writes into its output tensor.

The emulated device gives each op a tensor of its own, and zeros where the library's values are undefined.
"""

import random
from math import prod

import pytest
import torch
from mesh_programs import CHANNEL, function, listed
from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.driver.compile import compile_module
from tt_torch.mlir.context import make_context
from tt_torch.mlir.mesh import set_mesh
from tt_torch.wire import facts
from tt_torch.wire.decode import decode

SHAPE = "tensor<2x3xf32>"


def drawn(chance, mesh):
    """Pairs of chips, in which each chip is a sender once at most, and a receiver once at most."""
    chips = range(prod(mesh))
    count = chance.randint(1, len(chips))
    return [list(pair) for pair in zip(chance.sample(chips, count), chance.sample(chips, count), strict=True)]


def compiled(permutes, mesh):
    """The difference of permutes of one value."""
    lines = [
        f'%p{i} = "stablehlo.collective_permute"(%x) {{source_target_pairs = {listed(pairs)}, {CHANNEL}}} : '
        f"({SHAPE}) -> {SHAPE}"
        for i, pairs in enumerate(permutes)
    ]
    lines.append(f"%r = stablehlo.subtract %p0, %p1 : {SHAPE}")
    with make_context():
        module = ir.Module.parse(function("\n".join(lines), SHAPE, SHAPE))
        set_mesh(module, mesh)
        return decode(compile_module(module, CompilerConfig()))


class Memory:
    """The values of all chips by tensor. Several tensors can have the same memory."""

    def __init__(self, message, mesh):
        self.programs, self.mesh = message["programs"], mesh
        self.cached = {}

    def run(self, program, inputs):
        held = {t.id: x for t, x in zip(facts.inputs(program), inputs, strict=True)}
        for op in facts.ops(program):
            if op.name in facts.NOT_DEVICE_OPS - {"LoadCachedOp"}:
                continue
            values = [held[t.id] for t in op.operands]
            results = self.results(op, values)
            held.update(zip((t.id for t in op.results), results, strict=True))
        return [held[t.id] for t in facts.outputs(program)]

    def results(self, op, values):
        if op.name == "LoadCachedOp":
            name = op.record["callee_name"]
            if name not in self.cached:
                self.cached[name] = self.run(next(p for p in self.programs if p["name"] == name), values)
            return self.cached[name]
        if op.name == "PointToPointOp":
            return [self.sent(op.record, values)]
        if op.name == "FullOp":
            return [torch.full((prod(self.mesh), 2, 3), op.record["fill_value"]["FP"]["value"])]
        if op.key == "EltwiseBinaryOp.Subtract":
            return [values[0] - values[1]]
        assert op.name == "ToLayoutOp"
        return [values[0].clone()]

    def sent(self, record, values):
        x, *kept = values
        sender, receiver = (tuple(record[name]) for name in ("sender_coord", "receiver_coord"))
        assert sender[0] == receiver[0] or sender[1] == receiver[1]
        into = kept[0] if kept else torch.full_like(x, torch.nan)
        into[receiver[0] * self.mesh[1] + receiver[1]] = x[sender[0] * self.mesh[1] + sender[1]]
        return into


def permuted(x, pairs):
    result = torch.zeros_like(x)
    for sender, receiver in pairs:
        result[receiver] = x[sender]
    return result


@pytest.mark.parametrize("seed", range(20))
def test_transfers_leave_other_values_alone(seed):
    """Two permutes of one value, often with equal first pairs, in two calls with the same constants."""
    chance = random.Random(seed)
    mesh = chance.choice([(1, 2), (2, 2), (2, 3), (2, 4)])
    first = drawn(chance, mesh)
    sender, receiver = first[0]
    second = first[:1] + [pair for pair in drawn(chance, mesh) if pair[0] != sender and pair[1] != receiver]
    memory = Memory(compiled([first, second], mesh), mesh)
    for _ in range(2):
        x = torch.rand(prod(mesh), 2, 3)
        (result,) = memory.run(memory.programs[0], [x.clone()])
        assert torch.equal(result, permuted(x, first) - permuted(x, second))

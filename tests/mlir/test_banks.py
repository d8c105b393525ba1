"""Weights in parts in the banks of DRAM: which products read them so, and that their values stay as they are."""

from __future__ import annotations

import dataclasses
import warnings

import pytest
import torch
from layered import of_few_rows
from nights import seeds
from torch import nn
from torch_mlir import ir

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.mlir.context import make_context
from tt_torch.mlir.rules import Builder
from tt_torch.mlir.ttnn.layout import Layout, with_layout
from tt_torch.mlir.ttnn.optimizer.cores import cores_of
from tt_torch.mlir.ttnn.optimizer.overriding import NOTHING
from tt_torch.mlir.ttnn.optimizer.products import choices
from tt_torch.mlir.ttnn.sharded import BANKS
from tt_torch.profiling.cost_model import of_call
from tt_torch.tools.why import decisions
from tt_torch.wire import chips, facts
from tt_torch.wire.binary import system_desc
from tt_torch.wire.decode import decode

OPTIONS = {"dtype": "bf16", "optimization_level": 2, "enable_dram_sharded_matmul": True}
UP = 1024, 2816
X = torch.randn(1, UP[0])


def plain(inner=UP[0], columns=UP[1]):
    return nn.Linear(inner, columns, bias=False).eval()


def compiled(model, x, **options):
    return tt_torch.compile_model(model, (x,), CompilerConfig(**OPTIONS | options))


def from_banks(program):
    """The products of a binary that read their weights from banks."""
    ops = facts.ops(decode(program.binary)["programs"][0])
    return [op for op in ops if BANKS in (op.record.get("matmul_program_config") or {})]


@pytest.fixture
def fast_banks(monkeypatch):
    """Chips on which it pays to read every weight from banks."""
    for arch, chip in chips.CHIPS.items():
        monkeypatch.setitem(chips.CHIPS, arch, dataclasses.replace(chip, bank=1e12, row=0.05))


@pytest.mark.usefixtures("fast_banks")
@pytest.mark.parametrize("seed", seeds(10, 60))
def test_values_do_not_change(seed):
    """The blocks of block floats lie along the other dimension, and the bias of a single row is added apart. So these
    results round otherwise, but not more."""
    model, x, rng = of_few_rows(seed)
    options = {"dtype": rng.choice([None, "bf16"]), "arch": rng.choice(["wormhole_b0", "blackhole"])}
    options["weight_dtype"] = rng.choice([None, None, "bfp8_b", "bfp4_b"])
    ours, before = compiled(model, x, **options)(x), compiled(model, x, **options, enable_dram_sharded_matmul=False)(x)
    if options["weight_dtype"] is None and x.shape[-2] > 1:
        assert torch.equal(ours, before)
        return
    exact = model(x)
    errors = [(found - exact).norm() / exact.norm() for found in (ours, before)]
    assert errors[0] <= 1.5 * errors[1] + 1e-3


def test_a_weight_lies_in_parts_in_the_banks():
    program = compiled(plain(), X)
    (op,) = from_banks(program)
    (config,) = op.record["matmul_program_config"].values()
    assert (config["in0_block_w"], config["per_core_m"], config["per_core_n"]) == (8, 1, 2)
    left, weight = op.tensor("a"), op.tensor("b")
    assert not op.record["transpose_b"]
    assert weight.place == "DRAM"
    spec = weight.memory_config["shard_spec"]
    assert spec["shape"] == [1024, 8 * 32]  # 88 columns of tiles in eleven of the twelve banks
    corners = {"start_coord": {"x": 0, "y": 0}, "end_coord": {"x": 10, "y": 0}}
    assert spec["core_range_set"]["core_ranges"] == [corners]
    assert [t.memory_config["tensor_memory_layout"] for t in (left, op.results[0])] == ["WidthSharded"] * 2


@pytest.mark.parametrize("weight_dtype", [None, "bfp8_b"])
def test_a_weight_is_transposed_and_rounded_once(weight_dtype):
    """Block floats are made of the transposed weight."""
    program = compiled(plain(), X, weight_dtype=weight_dtype, math_fidelity="hifi2")
    (hoisted,) = (p for p in decode(program.binary)["programs"] if "const_eval" in p["name"])
    ops = [op for op in facts.ops(hoisted) if op.name in ("TransposeOp", "ToMemoryConfigOp")]
    assert [op.name for op in ops] == ["TransposeOp", "ToMemoryConfigOp"]
    turned, kept = (op.results[0] for op in ops)
    assert turned.shape == kept.shape == UP
    assert turned.dtype not in facts.BLOCK_BITS
    assert (kept.dtype in facts.BLOCK_BITS) == bool(weight_dtype)


class Shared(nn.Module):
    """Two products that read the same weight."""

    def __init__(self):
        super().__init__()
        self.layer = plain(1024, 1024)

    def forward(self, x):
        return self.layer(torch.relu(self.layer(x)))


OTHERS = {
    "a bias for several rows": (nn.Linear(*UP), torch.randn(2, UP[0]), {}),
    "a bias that is added at once": (nn.Linear(64, 64), X[:, :64], {}),
    "two rows of tiles": (plain(), torch.randn(33, UP[0]), {}),
    "a weight that two products read": (Shared(), X, {}),
    "an input as weight": (lambda x, y: x @ y, (X, torch.randn(UP)), {}),
    "an inner dimension of few tiles": (plain(64), X[:, :64], {}),
    "an activation in a kernel of its own": (nn.Sequential(plain(), nn.GELU("tanh")), X, {}),
    "weights that are prepared at each call": (plain(), X, {"consteval_parameters": False}),
    "no option": (plain(), X, {"enable_dram_sharded_matmul": False}),
    "level 1": (plain(), X, {"optimization_level": 1}),
    "one core for each bank of a Blackhole": (plain(), X, {"arch": "blackhole"}),
    "arithmetic that takes longer than reading": (plain(), X, {"weight_dtype": "bfp4_b"}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_products_read_their_weights_as_before(name):
    model, x, options = OTHERS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # options without effect are told
        program = tt_torch.compile_model(
            model, x if isinstance(x, tuple) else (x,), CompilerConfig(**OPTIONS | options)
        )
    assert from_banks(program) == []


class Block(nn.Module):
    """The last part of a decoder's layer, whose input is added to its result."""

    def __init__(self):
        super().__init__()
        self.up, self.down = plain(), plain(*UP[::-1])

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


@pytest.mark.parametrize("rows", [1, 8])
def test_the_input_of_a_layer_is_added_apart(rows):
    """Before, it is the bias of the last product if it has a single row."""
    model, x = Block().eval(), torch.randn(1, rows, UP[0])
    before, ours = (compiled(model, x, enable_dram_sharded_matmul=each) for each in (False, True))
    assert len(from_banks(ours)) == 2
    names = [op.name for op in facts.ops(decode(ours.binary)["programs"][0])]
    assert names.count("EltwiseBinaryOp") == 1
    torch.testing.assert_close(ours(x), before(x), rtol=2**-7, atol=2**-7)
    assert rows == 1 or torch.equal(ours(x), before(x))


def test_fewer_passes_make_it_pay():
    """One core per bank computes. With bfp4 weights, it takes longer than the reading unless it makes few passes."""
    x, found = torch.randn(1, 2048), []
    for fidelity in ("hifi4", "lofi"):
        found.append(from_banks(compiled(plain(2048), x, weight_dtype="bfp4_b", math_fidelity=fidelity)))
    assert not found[0] and found[1]


def test_the_profile_has_the_gain():
    """The optimizer and the profile use the same rates."""
    before, ours = (
        of_call(decode(compiled(plain(4096, 4096), torch.randn(1, 4096), enable_dram_sharded_matmul=each).binary))
        for each in (False, True)
    )
    assert ours.seconds < 0.8 * before.seconds


def test_the_form_is_among_those_that_were_weighed(tmp_path, monkeypatch):
    compiled(plain(), X, save_mlir=("TTIR",), output_mlir_dir=str(tmp_path), cache_size=0)
    for name, text in {"DTYPE": "bf16", "OPTIMIZATION_LEVEL": "2", "DRAM_SHARDED_MATMUL": "1"}.items():
        monkeypatch.setenv(f"TT_TORCH_{name}", text)
    (decision,) = decisions(str(next(tmp_path.iterdir())), "matmul")
    (chosen,) = (each for each in decision.candidates if each.verdict == "chosen")
    assert chosen.configuration == "from banks: 1x2 tiles in steps of 8"
    assert "1 to 1x11:dram:width_sharded" in chosen.moves


# The types, the tiles of the inner dimension, the columns of tiles, the step, and the bytes of circular buffers that
# graph captures of ttnn 0.81.1 have.
MEASURED = [
    ("BFloat16", "BFloat16", 32, 88, 8, 475136),
    ("BFloat16", "BFP_BFloat8", 128, 448, 4, 758272),
    ("BFloat16", "BFP_BFloat4", 36, 50, 3, 75072),
    ("Float32", "Float32", 9, 64, 3, 270336),
    ("BFloat16", "BFloat16", 4, 13, 4, 36864),
]


@pytest.mark.parametrize(("dtype", "kept", "inner", "columns", "step", "measured"), MEASURED)
def test_buffers_are_those_of_the_library(dtype, kept, inner, columns, step, measured):
    """The library chooses how it divides the columns of a bank, so a few tiles more are counted."""
    with make_context(), ir.Location.unknown():
        sizes = [([32, 32 * inner], dtype), ([32 * inner, 32 * columns], kept), ([32, 32 * columns], dtype)]
        x, w, made = (with_layout(dims, Layout(kind)) for dims, kind in sizes)
        argument = "ttcore.argument_type"
        text = f'func.func @main(%x: {x} {{{argument} = "input"}}, %w: {w} {{{argument} = "parameter"}}) {{ return }}'
        module = ir.Module.parse(text)
        block = module.body.operations[0].regions[0].blocks[0]
        b = Builder(ir.InsertionPoint.at_block_begin(block), ir.Location.unknown())
        op = b("ttnn.matmul", *block.arguments, type=made, transpose_a=False, transpose_b=False).owner
        found = [c for c in choices(op, cores_of(system_desc("wormhole_b0"), True), NOTHING) if c.weights]
        (counted,) = {c.scratch for c in found if c.attributes["matmul_program_config"][BANKS]["in0_block_w"] == step}
    assert measured <= counted <= 1.1 * measured

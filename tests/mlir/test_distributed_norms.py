"""RMS norms of a dimension that an axis of the mesh splits: one op for few rows, and the same values as the chain of
primitives."""

import random

import pytest
import torch
from mesh_programs import PARAMETER, norms
from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.driver.compile import compile_module
from tt_torch.mlir import pipeline
from tt_torch.mlir.context import make_context
from tt_torch.mlir.mesh import set_mesh
from tt_torch.mlir.ttnn.passes.distributed_norms import rectangle
from tt_torch.profiling.cost_model import of_call
from tt_torch.runtime import Binary, Device
from tt_torch.runtime.mesh_executable import MeshExecutable
from tt_torch.wire import facts
from tt_torch.wire.calls import op_histogram, public
from tt_torch.wire.decode import decode

KINDS = {"f32": torch.float32, "bf16": torch.bfloat16}
AXES = {"columns": 0, "rows": 1}
NORM, SUM = "DistributedRMSNormOp", "AllReduceOp"


def compiled(text, mesh, **options):
    with make_context():
        module = ir.Module.parse(text)
        set_mesh(module, mesh)
        return compile_module(module, CompilerConfig(verify_ir=True, **options))


@pytest.fixture
def unfused(monkeypatch):
    """Compiles a program without the op."""

    def compile_without(text, mesh, **options):
        with monkeypatch.context() as patched:
            patched.setattr(pipeline, "fuse_distributed_norms", lambda module: None)
            return compiled(text, mesh, **options)

    return compile_without


def run(binary, mesh, line, x, weight):
    axis, split = AXES[line], [None, None]
    of_x, of_weight = list(split), list(split)
    of_x[axis], of_weight[axis] = x.dim() - 1, 0
    with Device(mesh_shape=mesh) as device:
        executable = MeshExecutable(Binary(binary), 0, device, [tuple(of_x), tuple(of_weight)], [tuple(of_x)])
        (result,) = executable([x, weight])
        return result


def case(seed):
    rng = random.Random(seed)
    mesh = rng.choice([(1, 2), (1, 4), (2, 4), (4, 2), (8, 1)])
    line = rng.choice([line for line, axis in AXES.items() if mesh[axis] > 1])
    outer = rng.choice([[rng.randint(1, 32)], [rng.randint(1, 4), rng.randint(1, 8)], [1, rng.randint(1, 32)], [32, 1]])
    sizes = [*outer, 32 * rng.choice([1, 2, 3, 5, 8, 12, 16, 40, 64])]
    return mesh, line, sizes, rng.choice(["f32", "bf16"]), rng.randint(1, 4), rng.choice([1e-5, 1e-6, 0.25])


@pytest.mark.parametrize("seed", range(24))
def test_values_are_those_of_the_chain(seed, unfused):
    mesh, line, sizes, element, count, eps = case(seed)
    text, dtype, n = norms(mesh, line, sizes, element, count, eps), KINDS[element], mesh[AXES[line]]
    level = seed % 3
    fused = compiled(text, mesh, optimization_level=level)
    ops = op_histogram(decode(fused))
    assert (ops[NORM], ops[SUM]) == (count, 0)
    generator = torch.Generator().manual_seed(seed)
    scale = 10.0 ** random.Random(seed).randint(-3, 3)
    x = (scale * torch.randn([*sizes[:-1], sizes[-1] * n], generator=generator)).to(dtype)
    weight = torch.randn(sizes[-1] * n, generator=generator).to(dtype)
    expected = x.double()
    for _ in range(count):
        mean = (expected**2).mean(-1, keepdim=True)
        expected = (expected * torch.rsqrt(mean + float(torch.tensor(eps))) * weight.double()).to(dtype).double()
    result = run(fused, mesh, line, x, weight)
    torch.testing.assert_close(result, expected.to(dtype))
    torch.testing.assert_close(result, run(unfused(text, mesh, optimization_level=level), mesh, line, x, weight))


@pytest.mark.parametrize("sizes", [(33, 64), (8, 48), (2, 32, 64), (0, 64), (32, 17 * 32)])
def test_other_shapes_stay_chains(sizes):
    """More rows, tiles that are cut, no rows, and rows that one core would have alone."""
    assert op_histogram(decode(compiled(norms((1, 4), "rows", sizes), (1, 4))))[NORM] == 0


EDITS = {
    "another number of chips": ("dense<4.0>", "dense<3.0>"),
    "a product with other values": ("stablehlo.multiply %f0, %v0", "stablehlo.multiply %gs, %v0"),
    "another square": ("stablehlo.multiply %f0, %f0", "stablehlo.multiply %f0, %gs"),
    "a sum instead of a mean": ("dense<64.0>", "dense<63.0>"),
}


@pytest.mark.parametrize("name", EDITS)
def test_other_chains_stay_chains(name):
    text, (old, new) = norms((1, 4), "rows", (8, 64)), EDITS[name]
    assert text.count(old) == 1
    assert op_histogram(decode(compiled(text.replace(old, new), (1, 4))))[NORM] == 0


def test_a_chain_that_something_else_reads_stays():
    text = norms((1, 4), "rows", (8, 64)).replace(
        "return %r0", "%more = stablehlo.add %r0, %v0 : tensor<8x64xf32> return %more"
    )
    ops = op_histogram(decode(compiled(text, (1, 4))))
    assert (ops[NORM], ops[SUM]) == (0, 1)


def test_a_norm_whose_weight_is_an_input_stays():
    text = norms((1, 4), "rows", (8, 64)).replace(PARAMETER, "")
    assert op_histogram(decode(compiled(text, (1, 4))))[NORM] == 0


def test_one_chip_along_the_axis_needs_no_exchange():
    assert op_histogram(decode(compiled(norms((1, 4), "columns", (8, 64)), (1, 4))))[NORM] == 0


def test_two_semaphores_take_turns():
    """They, and the statistics, are made before anything else, and no op has those of the op before it."""
    (program,) = public(decode(compiled(norms((2, 4), "rows", (8, 64), count=5), (2, 4))))
    ops = list(facts.ops(program))
    names = [op.name for op in ops if op.on_device]
    assert names[:4] == ["EmptyOp"] * 2 + ["CreateGlobalSemaphoreOp"] * 2
    assert names.count("EmptyOp") == names.count("CreateGlobalSemaphoreOp") == 2
    fused = [op for op in ops if op.name == NORM]
    assert [op.record["semaphore"]["global_id"] for op in fused] == [1, 2, 1, 2, 1]
    stats = [op.tensor("stats") for op in fused]
    assert len({t.id for t in stats[:2]}) == 2
    assert [t.id for t in stats] == [stats[i % 2].id for i in range(5)]
    assert {(t.shape, t.dtype, t.place) for t in stats} == {((1, 1, 32, 32 * 4), "Float32", "L1")}


@pytest.mark.parametrize("grid", [(8, 8), (10, 13), (10, 11), (1, 1)])
def test_cores_are_a_rectangle(grid):
    """They have equally many tiles, and lie on a part of the first row, or on whole rows."""
    rows, columns = grid
    for count in range(1, 300):
        height, width = rectangle(count, grid)
        assert count % (height * width) == 0
        assert (height == 1 and width <= columns) or (height <= rows and width == columns)
        assert not any(count % n == 0 for n in range(height * width + 1, columns + 1))


@pytest.mark.parametrize("mesh", [(1, 2), (1, 4), (2, 4)])
@pytest.mark.parametrize("arch", ["wormhole_b0", "blackhole"])
@pytest.mark.parametrize(
    "sizes, element",
    [
        ((8, 64), "bf16"),
        ((1, 32), "f32"),
        ((4, 8, 96), "f32"),
        ((32, 1, 1024), "bf16"),
        ((32, 4096), "f32"),
        ((32, 13 * 32), "f32"),
    ],
)
def test_the_op_is_no_slower_than_the_chain(sizes, element, arch, mesh, unfused):
    """By the cost model, which does not know how long the host waits for a new semaphore."""
    text = norms(mesh, "rows", sizes, element)
    fused, chain = (of_call(decode(c(text, mesh, arch=arch))) for c in (compiled, unfused))
    assert fused.seconds <= chain.seconds and fused.dispatch <= chain.dispatch

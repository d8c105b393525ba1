"""Tenstorrent's library takes the collectives of our compiler and of tt-mlir, on mock meshes of chips.

Collectives need all chips to run, so the library only checks them here. Values are tested on the emulated device.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from mesh_programs import LINES, OPS, function, groups, listed, norms, program
from runtime.programs import Maker
from torch_mlir import ir

from tt_torch.codegen import environment
from tt_torch.config import CompilerConfig
from tt_torch.driver.compile import compile_module
from tt_torch.mlir import pipeline
from tt_torch.mlir.context import make_context
from tt_torch.mlir.mesh import set_mesh
from tt_torch.runtime import Binary
from tt_torch.wire.calls import op_histogram
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode

pytestmark = [pytest.mark.conformance, pytest.mark.needs_ttnn]

MESHES = [(1, 2), (2, 4)]
SIZES = [(24, 40), (8,), (8, 3, 5)]  # rows and columns of chips and their product divide the first dimension
PLUGIN = Path(__file__).parents[1] / "data" / "plugin"
FOREIGN = sorted([*PLUGIN.glob("mesh8_*.ttnn"), *PLUGIN.glob("tensor_parallel_*.ttnn")])


def compiled(text, mesh, device, **options):
    with make_context():
        module = ir.Module.parse(text)
        set_mesh(module, mesh)
        return compile_module(module, CompilerConfig(arch=environment.DEVICES[device], verify_ir=True, **options))


def failures(checkers, device, mesh, binary):
    return [(v.op, *v.differences, v.code) for v in checkers(device, mesh).check(binary).failures]


def cases():
    """CI takes one data type of each collective, axis and shape."""
    shown = list(product(OPS, LINES, SIZES))
    for number, (op, line, sizes) in enumerate(shown):
        for k, element in enumerate(["f32", "bf16", "i32", "ui32", "ui8", "i1"]):
            marks = [] if k == number % 3 else [pytest.mark.every_type]
            yield pytest.param(op, line, sizes, element, marks=marks)


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("op, line, sizes, element", list(cases()))
def test_collectives(op, line, sizes, element, mesh, checkers):
    device = list(environment.DEVICES)[(OPS.index(op) + LINES.index(line)) % 3]
    text = program(op, mesh, line, element, "or" if element == "i1" else "add", sizes)
    assert failures(checkers, device, mesh, compiled(text, mesh, device)) == []


@pytest.mark.parametrize("device", environment.DEVICES)
@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_a_tensor_parallel_perceptron(element, mesh, device, checkers):
    """The columns of the mesh split the weights, the first by columns and the second by rows."""
    rows = listed(groups(mesh, "rows"))
    x, w, v, h = (f"tensor<{s}x{element}>" for s in ("32x64", "64x128", "128x64", "32x128"))
    body = f"""
      %zero = stablehlo.constant dense<0.0> : {h}
      %w = stablehlo.constant dense<0.5> : {w}
      %v = stablehlo.constant dense<0.5> : {v}
      %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({x}, {w}) -> {h}
      %a = stablehlo.maximum %h, %zero : {h}
      %p = stablehlo.dot_general %a, %v, contracting_dims = [1] x [0] : ({h}, {v}) -> {x}
      %r = "stablehlo.all_reduce"(%p) ({{ ^bb0(%l: tensor<{element}>, %m: tensor<{element}>):
        %s = stablehlo.add %l, %m : tensor<{element}>
        stablehlo.return %s : tensor<{element}> }}) {{replica_groups = {rows}}} : ({x}) -> {x}"""
    assert failures(checkers, device, mesh, compiled(function(body, x, x), mesh, device)) == []


NORM = "DistributedRMSNormOp"
ROWS = [
    ((1, 32), "f32", 1),
    ((8, 64), "bf16", 3),
    ((4, 8, 96), "f32", 3),
    ((32, 1, 4096), "bf16", 2),
    ((32, 416), "f32", 2),
]


@pytest.mark.parametrize("device", environment.DEVICES)
@pytest.mark.parametrize("mesh, line", [((1, 4), "rows"), ((2, 4), "rows"), ((2, 4), "columns")])
def test_norms_of_a_split_dimension(mesh, line, device, checkers, monkeypatch):
    """The library takes the op, and needs no more memory than the optimizer counts."""
    counted, optimize = [], pipeline.optimize
    monkeypatch.setattr(pipeline, "optimize", lambda *arguments: counted.append(optimize(*arguments)))
    for sizes, element, count in ROWS:
        binary = compiled(norms(mesh, line, sizes, element, count), mesh, device, optimization_level=2)
        assert op_histogram(decode(binary))[NORM] == count
        report = checkers(device, mesh).check(binary)
        assert [(v.op, *v.differences, v.code) for v in report.failures] == []
        assert report.peaks["main"]["core"] <= counted[-1], sizes


def changed(binary, **fields):
    """The binary with other fields of its norm."""
    message = decode(binary)
    (record,) = [op["type"] for one in message["programs"] for op in one["operations"] if NORM in op["type"]]
    record[NORM] |= fields
    return encode(message, "f3606800")


BFLOAT16 = {"compute_config": {"math_fidelity": "HiFi4", "fp32_dest_acc_en": False}}


@pytest.mark.parametrize(
    "fields, message",
    [({"weight": None}, "requires a weight"), ({"stats": None}, "requires a pre-allocated stats tensor"),
     (BFLOAT16, "must match the compute accumulation format")],
)  # fmt: skip
def test_norms_that_the_library_refuses(fields, message, checkers):
    binary = compiled(norms((1, 4), "rows", (8, 64)), (1, 4), "n300")
    ((op, difference, _),) = failures(checkers, "n300", (1, 4), changed(binary, **fields))
    assert op == NORM and message in difference


@pytest.mark.parametrize("device", ["n150", "p150"])
@pytest.mark.parametrize("path", FOREIGN, ids=lambda path: path.stem)
def test_programs_of_tt_mlir(path, device, checkers):
    """The tensor-parallel perceptrons, and the collectives of JAX on eight chips."""
    rows, columns = Binary(path.read_bytes()).programs[0].mesh_shape
    assert failures(checkers, device, (rows, columns), path.read_bytes()) == []


@pytest.mark.parametrize("dims", [*product((None, 0, 1), repeat=2)])
def test_tensors_are_distributed_and_aggregated(dims, checkers):
    """The library does not split one dimension along both axes, and needs a dimension of its own for each axis."""
    mesh, maker = (2, 4), Maker((2, 4))
    sizes = [64, 256]
    for count, dim in zip(mesh, dims, strict=True):
        if dim is not None:
            sizes[dim] //= count
    placements = [{"type": "Replicate" if d is None else "Shard", "dim": d or 0} for d in dims]
    place = {"tile": False, "buffer": "host"}
    x = maker.input((64, 256), **place)
    device = {"global_id": 0}
    split = maker.op("DistributeTensorOp", **{"in": x}, out=maker.tensor(sizes, tile=False), device=device,
                     mapper_config={"placements": placements})  # fmt: skip
    free = [d for d in (0, 1) if d not in dims]
    joined = [free.pop(0) if d is None else d for d in dims] if dims[0] != dims[1] or dims[0] is None else dims
    used = [1 if d is None else n for d, n in zip(dims, mesh, strict=True)]
    config = {"dims": joined, "mesh_shape_override": used}
    out = maker.op("AggregateTensorOp", **{"in": split}, out=maker.tensor((64, 256), **place), composer_config=config)
    found = failures(checkers, "n150", mesh, maker.binary(out))
    if dims[0] == dims[1] and dims[0] is not None:
        assert [difference for _, difference, _ in found] == ["RuntimeError: dims must be unique"] * 2
    else:
        assert found == []


@pytest.mark.parametrize("mesh", MESHES)
def test_a_cache_on_a_mesh(mesh, checkers):
    """The program reads the position on the host, from one of the chips."""
    maker = Maker(mesh)
    cache, new = maker.input((1, 4, 64, 32), "BFloat16"), maker.input((1, 4, 1, 32), "BFloat16")
    position = maker.input((1,), "UInt32", tile=False)
    maker.op("UpdateCacheOp", cache=cache, input=new, update_index=position, batch_offset=0)
    assert failures(checkers, "n300", mesh, maker.binary(cache)) == []

"""Shardings in the words of GSPMD, XLA's older way to split values, compared with the same functions without them."""

import io
import random
import re

import numpy as np
import pytest
import torch

jax = pytest.importorskip("jax", reason="the extra `jax` is not installed")

from split_programs import program, splitter  # noqa: E402
from test_jax_meshes import PROGRAMS, arrays, assert_equal, mapped, mesh_of  # noqa: E402
from torch_mlir import ir  # noqa: E402

import tt_torch  # noqa: E402
import tt_torch.jax  # noqa: E402
from tt_torch.errors import CompileError, ShardingError, UnsupportedOpError  # noqa: E402
from tt_torch.mlir.context import make_context  # noqa: E402
from tt_torch.mlir.stablehlo import gspmd  # noqa: E402
from tt_torch.runtime import Binary  # noqa: E402


@pytest.fixture(autouse=True)
def without_shardy():
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", False)
    yield
    jax.config.update("jax_use_shardy_partitioner", before)


@pytest.mark.parametrize("seed", range(9100, 9104))
def test_random_programs(seed):
    sizes = random.Random(seed).choice([(2, 2), (2, 4), (4, 2), (1, 8)])
    (x,) = arrays((8, 16))
    compiled = tt_torch.jax.compile(program(seed, splitter(random.Random(seed), sizes)), x)
    for found, expected in zip(compiled(x), program(seed, lambda x: x)(x), strict=True):
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_of_chips(name):
    of_chip, given, made, of_whole = PROGRAMS[name]
    xs = arrays((8, 16), (16, 8))[: len(given)]
    compiled = tt_torch.jax.compile(mapped(of_chip, mesh_of((2, 2)), tuple(given), made), *xs)
    assert_equal(compiled(*xs), of_whole(*xs))


T = "tensor<8x6xf32>"


def annotated(sharding):
    return f"""module attributes {{mhlo.num_partitions = 8 : i32}} {{
      func.func @main(%x: {T} {{mhlo.sharding = "{sharding}"}}) -> {T} {{
        %0 = stablehlo.add %x, %x : {T}
        return %0 : {T}
      }}
    }}"""


def in_parts(sharding, part, inside="{manual}"):
    return f"""module attributes {{mhlo.num_partitions = 8 : i32}} {{
      func.func @main(%x: {T}) -> {T} {{
        %0 = stablehlo.custom_call @Sharding(%x) {{mhlo.sharding = "{sharding}"}} : ({T}) -> {T}
        %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {{mhlo.sharding = "{inside}"}} : ({T}) -> {part}
        %2 = stablehlo.add %1, %1 : {part}
        %3 = stablehlo.custom_call @Sharding(%2) {{mhlo.sharding = "{inside}"}} : ({part}) -> {part}
        %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {{mhlo.sharding = "{sharding}"}} : ({part}) -> {T}
        return %4 : {T}
      }}
    }}"""


@pytest.mark.parametrize(
    ("text", "mesh"),
    [
        (annotated("{devices=[8,1]<=[8]}"), (1, 8)),
        (annotated("{devices=[4,2]0,1,2,3,4,5,6,7}"), (4, 2)),
        (annotated("{devices=[4,2]<=[2,4]T(1,0)}"), (2, 4)),
        (annotated("{devices=[1,2,4]<=[8] last_tile_dim_replicate}"), (2, 4)),
        (annotated("{maximal device=3}"), (1, 1)),
        (in_parts("{devices=[8,1]<=[8]}", "tensor<1x6xf32>"), (1, 8)),
        (in_parts("{devices=[4,2]<=[8]}", "tensor<2x3xf32>"), (4, 2)),
        (in_parts("{replicated}", T), (1, 8)),
    ],
)
def test_the_mesh_of_a_text(text, mesh):
    x = torch.randn(8, 6)
    compiled = tt_torch.compile_stablehlo(text)
    assert torch.equal(compiled(x), x + x)
    assert tuple(Binary(compiled.binary).programs[0].mesh_shape) == mesh


def test_bytecode():
    file = io.BytesIO()
    with make_context():
        ir.Module.parse(annotated("{devices=[8,1]<=[8]}")).operation.write_bytecode(file)
    x = torch.randn(8, 6)
    compiled = tt_torch.compile_stablehlo(file.getvalue())
    assert torch.equal(compiled(x), x + x)
    assert tuple(Binary(compiled.binary).programs[0].mesh_shape) == (1, 8)


THREE_AXES = "{devices=[2,2,2]<=[2,2,2]T(0,2,1) last_tile_dim_replicate}"


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (annotated(THREE_AXES), CompileError, f"no mesh of two axes for its shardings: {re.escape(THREE_AXES)}"),
        (annotated("{devices=[8,1]7,6,5,4,3,2,1,0}"), CompileError, "no mesh of two axes"),
        (annotated("{devices=[8,1]0,0,2,3,4,5,6,7}"), CompileError, "does not name each chip once"),
        (annotated("{devices=[8]<=[8]}"), CompileError, "has another form"),
        (annotated("{devices=[1,4,2]<=[8] last_tile_dim_replicate}"), UnsupportedOpError, "size 6 has no equal parts"),
        (in_parts(THREE_AXES, "tensor<4x3xf32>"), UnsupportedOpError, "(?s)@SPMDFullToShardShape.*no mesh of two axes"),
        (in_parts("{devices=[4,1]<=[4]}", "tensor<2x6xf32>"), UnsupportedOpError, "a sharding is not for 8 chips"),
        (in_parts("{devices=[8,1]<=[8]}", "tensor<2x6xf32>"), UnsupportedOpError, "the parts make a tensor<1x6xf32>"),
        (
            in_parts("{devices=[1,4,2]<=[8] last_tile_dim_replicate}", "tensor<8x2xf32>"),
            ShardingError,
            "dimension 1 has no 4 equal parts",
        ),
        (
            in_parts("{devices=[8,1]<=[8]}", "tensor<1x6xf32>", "{devices=[1,1,8]<=[8] last_tile_dims={manual}}"),
            UnsupportedOpError,
            "do not compute all of it by themselves",
        ),
    ],
)
def test_what_is_refused(text, error, said):
    with pytest.raises(error, match=said):
        tt_torch.compile_stablehlo(text)


def test_tiles_are_those_of_the_words():
    """The chips are counted in any order of the axes of a grid."""
    for grid, order in (((2, 4), (1, 0)), ((2, 2, 2), (2, 0, 1)), ((8,), (0,))):
        chips = np.arange(8).reshape(grid).transpose(order).reshape(4, 2)
        rows, columns = gspmd.tiles(f"{{devices=[4,2]<={list(grid)}T{order}}}".replace(" ", "").replace(",)", ")"), 2)
        assert all(chips[rows[chip], columns[chip]] == chip for chip in range(8))

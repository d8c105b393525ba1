"""JAX's annotations of values that are split over a mesh, compared with the same functions without annotations."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest
import torch

jax = pytest.importorskip("jax", reason="the extra `jax` is not installed")

from split_programs import AUTO, program, splitter  # noqa: E402

import tt_torch  # noqa: E402
import tt_torch.jax  # noqa: E402
from tt_torch.errors import CompileError, ExtraMissingError, UnsupportedOpError  # noqa: E402
from tt_torch.mlir.stablehlo import shardy_passes  # noqa: E402
from tt_torch.runtime import Device  # noqa: E402
from tt_torch.wire.calls import op_histogram  # noqa: E402
from tt_torch.wire.decode import decode  # noqa: E402

jnp, lax = jax.numpy, jax.lax
MESHES = [(2, 2), (2, 4), (4, 2), (1, 8), (1, 2), (4, 1)]
SHAPES = [(8, 16), (4, 8, 8), (16, 8), (2, 4, 4, 8), (8, 3, 4), (6, 8)]


def split(x, *spec, sizes=(2, 4), names=("a", "b")):
    mesh = jax.sharding.AbstractMesh(sizes, names, axis_types=(AUTO,) * len(sizes))
    return lax.with_sharding_constraint(x, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec)))


def arrays(*shapes):
    generator = np.random.default_rng(0)
    return [jnp.asarray(generator.standard_normal(shape), dtype=jnp.float32) for shape in shapes]


def assert_equal(found, expected):
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(9000, 9008))
def test_random_programs(seed):
    draw = random.Random(seed)
    sizes, shape = draw.choice(MESHES), draw.choice(SHAPES)
    (x,) = arrays(shape)
    compiled = tt_torch.jax.compile(program(seed, splitter(random.Random(seed), sizes)), x)
    for found, expected in zip(compiled(x), program(seed, lambda x: x)(x), strict=True):
        assert_equal(found, expected)


def mlp(x, w, v):
    h = jax.nn.relu(split(x, "a", None) @ split(w, None, "b"))
    return split(h, "a", "b") @ split(v, "b", None)


def test_each_chip_has_its_part_of_the_weights(tmp_path):
    x, w, v = arrays((8, 16), (16, 32), (32, 16))
    compiled = tt_torch.jax.compile(mlp, x, w, v)
    expected = jax.nn.relu(x @ w) @ v
    assert_equal(compiled(x, w, v), expected)
    binary = decode(compiled.model.binary)
    assert [tuple(each["desc"]["shape"]) for each in binary["programs"][0]["inputs"]] == [(4, 16), (16, 8), (8, 16)]
    collectives = {name: n for name, n in op_histogram(binary).items() if "All" in name or "Point" in name}
    assert collectives == {"AllReduceOp": 1}
    compiled.model.save(tmp_path / "mlp.ttpkg")
    loaded = tt_torch.load(tmp_path / "mlp.ttpkg")
    assert_equal(loaded(*map(torch.from_dlpack, (x, w, v))), expected)


def layer(x, wq, wk, wv, wo, up, down):
    """A layer of a decoder, whose weights are split as by Megatron."""
    b, t, d = x.shape
    q, k, v = ((x @ split(w, None, "b")).reshape(b, t, 4, d // 4).transpose(0, 2, 1, 3) for w in (wq, wk, wv))
    a = jax.nn.softmax(q @ k.transpose(0, 1, 3, 2) / 2.0, -1) @ v
    x = split(x, "a") + a.transpose(0, 2, 1, 3).reshape(b, t, d) @ split(wo, "b", None)
    return x + jax.nn.silu(x @ split(up, None, "b")) @ split(down, "b", None)


def test_a_layer_of_a_decoder_has_two_sums(monkeypatch):
    given = arrays((4, 8, 16), *[(16, 16)] * 4, (16, 32), (32, 16))
    compiled = tt_torch.jax.compile(layer, *given)
    counts = op_histogram(decode(compiled.model.binary))
    assert counts["AllReduceOp"] == 2 and not counts["AllGatherOp"] and not counts["MeshPartitionOp"]
    found = compiled(*given)
    monkeypatch.setitem(globals(), "split", lambda x, *spec: x)
    np.testing.assert_allclose(found, layer(*given), rtol=1e-3, atol=1e-3)


DISTRIBUTED = """
import jax, numpy as np
import tt_torch.jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("a",))
x = jax.device_put(np.arange(8, dtype=np.float32), NamedSharding(mesh, P("a")))
compiled = tt_torch.jax.compile(jax.jit(lambda x: x * 2, in_shardings=NamedSharding(mesh, P("a"))), x)
assert np.array_equal(compiled(x), np.asarray(x) * 2) and compiled.model.executor.executable.mesh_shape == (1, 2)
"""


def test_arrays_that_jax_has_distributed():
    variables = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", DISTRIBUTED], env=variables, check=True)


# Shardy's own passes give wrong values for these, if the dimensions stay split.
TRAPS = {
    "a reversed dimension": lambda x: split(x, "a", "b")[::-1, ::-1],
    "a maximum over a split dimension": lambda x: split(x, "a", "b").max(1),
    "a sum that begins at 3": lambda x: lax.reduce(split(x, "a", "b"), np.float32(3), lax.add, (1,)),
    "a product over a split dimension": lambda x: split(x, "a", "b").prod(0),
    "the place of the largest element": lambda x: jnp.argmax(split(x, "a", "b"), 1),
}


@pytest.mark.parametrize("name", TRAPS)
def test_values_that_must_be_whole(name, monkeypatch):
    (x,) = arrays((8, 16))
    found = tt_torch.jax.compile(TRAPS[name], x)(x)
    monkeypatch.setitem(globals(), "split", lambda x, *spec: x)
    assert_equal(found, TRAPS[name](x))


def test_a_part_that_each_chip_computes_beside_annotations():
    mesh = jax.sharding.AbstractMesh((2, 4), ("a", "b"), axis_types=(AUTO, AUTO))
    spec = jax.sharding.PartitionSpec("a", None)
    each = jax.shard_map(lambda x: lax.psum(x, "a"), mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    (x,) = arrays((8, 16))
    expected = jnp.concatenate([jnp.sin(x[:4] + x[4:])] * 2)
    assert_equal(tt_torch.jax.compile(lambda x: jnp.sin(each(split(x, "a", "b"))), x)(x), expected)


@pytest.mark.parametrize(
    ("function", "error", "said"),
    [
        (lambda x: split(x, "b", None) * 2, UnsupportedOpError, r"of size 6 has no equal parts along \['b'\]"),
        (lambda x: split(x, None, ("b", "a")), UnsupportedOpError, "in the order of the mesh"),
        (lambda x: jnp.linalg.qr(split(x, "a", None))[1], UnsupportedOpError, "the host computes"),
        (
            lambda x: split(x, "a", "b", sizes=(2, 2, 2), names=("a", "b", "c")),
            UnsupportedOpError,
            "one or two axes",
        ),
        (lambda x: split(split(x, "a", "b"), "b", None, sizes=(2, 2)), CompileError, "has 2 meshes"),
    ],
)
def test_what_is_refused(function, error, said):
    with pytest.raises(error, match=said):
        tt_torch.jax.compile(function, *arrays((6, 16)))


TEXT = """
module {
  sdy.mesh @mesh = <["a"=2]>
  func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<4xf32> {
    %y = stablehlo.add %x, %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
"""


def test_text():
    x = torch.arange(4.0)
    assert tt_torch.compile_stablehlo(TEXT)(x).equal(2 * x)
    with Device() as device, pytest.raises(Exception, match="mesh"):
        tt_torch.compile_stablehlo(TEXT, device=device)
    assert tt_torch.compile_stablehlo(TEXT.replace('"a"=2', '"a"=1'))(x).equal(2 * x)  # one chip
    with pytest.raises(CompileError, match="Shardy cannot split"):
        tt_torch.compile_stablehlo(TEXT.replace("stablehlo.add", "stablehlo.odd"))


@pytest.mark.parametrize(("sharding", "parts"), [('{"a"}, {}', 1), ('{}, {"b"}', 1), ('{"a"}, {"b"}', 2)])
def test_a_part_of_a_whole_value_is_one_op(sharding, parts):
    compiled = tt_torch.compile_stablehlo(f"""module {{
      sdy.mesh @mesh = <["a"=2, "b"=4]>
      func.func @main(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {{
        %0 = sdy.sharding_constraint %x <@mesh, [{{}}, {{}}]> : tensor<64x128xf32>
        %1 = stablehlo.sine %0 : tensor<64x128xf32>
        %2 = sdy.sharding_constraint %1 <@mesh, [{sharding}]> : tensor<64x128xf32>
        return %2 : tensor<64x128xf32>
      }}
    }}""")
    x = torch.randn(64, 128)
    torch.testing.assert_close(compiled(x), x.sin())
    assert op_histogram(decode(compiled.binary)) == {"MeshPartitionOp": parts, "ToLayoutOp": 1, "EltwiseUnaryOp.Sin": 1}


ENDLESS = """
module {
  sdy.mesh @mesh = <["a"=2]>
  func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<4xf32> {
    %y = call @again(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
  func.func private @again(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = call @again(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %z = call @again(%y) : (tensor<4xf32>) -> tensor<4xf32>
    return %z : tensor<4xf32>
  }
}
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ENDLESS, "functions have more than 100000 ops"),
        (TEXT.replace('"a"', '"a b"'), "must consist of letters"),
        (TEXT.replace("@mesh", '@"odd mesh"'), "must consist of letters"),
    ],
)
def test_hostile_text(text, said):
    with pytest.raises(CompileError, match=said):
        tt_torch.compile_stablehlo(text)


@pytest.mark.parametrize("text", [TEXT, "%y = sdy.manual_computation(%x)"], ids=["annotations", "parts"])
def test_without_jax(text, monkeypatch):
    monkeypatch.setattr(
        shardy_passes, "require", lambda extra: (_ for _ in ()).throw(ExtraMissingError(extra, ["jax"]))
    )
    with pytest.raises(ExtraMissingError, match=r"pip install 'tt-torch\[jax\]'"):
        tt_torch.compile_stablehlo(text)

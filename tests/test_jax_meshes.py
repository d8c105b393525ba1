"""JAX's `shard_map` on a mesh of chips, compared with the same function of whole arrays."""

import io

import numpy as np
import pytest
import torch

jax = pytest.importorskip("jax", reason="the extra `jax` is not installed")

import tt_torch  # noqa: E402
import tt_torch.jax  # noqa: E402
from tt_torch.errors import CompileError, DeviceError, InexactError, ModuleFormatError, UnsupportedOpError  # noqa: E402
from tt_torch.mlir.mesh import mesh_of as mesh_shape  # noqa: E402
from tt_torch.mlir.reading import read_stablehlo  # noqa: E402
from tt_torch.runtime import Device  # noqa: E402
from tt_torch.wire.calls import op_histogram  # noqa: E402
from tt_torch.wire.decode import decode  # noqa: E402

jnp, lax = jax.numpy, jax.lax
P = jax.sharding.PartitionSpec

AUTO = jax.sharding.AxisType.Auto


def mesh_of(sizes, names=("a", "b", "c")):
    return jax.sharding.AbstractMesh(sizes, names[: len(sizes)], axis_types=(AUTO,) * len(sizes))


def arrays(*shapes):
    generator = np.random.default_rng(0)
    return [jnp.asarray(generator.standard_normal(shape), dtype=jnp.float32) for shape in shapes]


def mapped(function, mesh, given, made):
    return jax.shard_map(function, mesh=mesh, in_specs=given, out_specs=made, check_vma=False)


def assert_equal(found, expected):
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-4, atol=1e-5)


def product_of_parts(x, w):
    return lax.psum(jnp.tanh(x) @ w, "b")


def looped(x):
    for _ in range(3):
        x = x * 0.5 + x.mean(0)
    return x


# The function of a chip, the specs of its arguments and of its result, and the same function of whole arrays of 8x16.
PROGRAMS = {
    "each for itself": (jnp.sin, [P("a", "b")], P("a", "b"), jnp.sin),
    "both axes on one dimension": (jnp.sin, [P(("a", "b"), None)], P(("a", "b"), None), jnp.sin),
    "a sum": (lambda x: lax.psum(x.sum(0), "a"), [P("a", None)], P(None), lambda x: x.sum(0)),
    "a sum of all": (lambda x: lax.psum(x.sum(), ("a", "b")), [P("a", "b")], P(), lambda x: x.sum()),
    "a mean": (lambda x: lax.pmean(x, "a"), [P("a", None)], P(None, None), lambda x: x.reshape(2, -1, 16).mean(0)),
    "a largest": (lambda x: lax.pmax(x.max(0), "a"), [P("a", None)], P(None), lambda x: x.max(0)),
    "a gather": (lambda x: lax.all_gather(x, "b", axis=1, tiled=True), [P("a", "b")], P("a", None), lambda x: x),
    "a scatter": (lambda x: lax.psum_scatter(x, "b", scatter_dimension=1, tiled=True), [P("a", None)], P("a", "b"),
                  lambda x: 2 * x),
    "all to all": (lambda x: lax.all_to_all(x, "b", 1, 0, tiled=True), [P(("a", "b"), None)], P("a", "b"), lambda x: x),
    "the own place": (lambda x: x * 0 + lax.axis_index("a") * 10 + lax.axis_index("b"), [P("a", "b")], P("a", "b"),
                      lambda x: np.kron([[0, 1], [10, 11]], np.ones((4, 8)))),
    "a loop": (lambda x: lax.fori_loop(0, 3, lambda i, c: c * 0.5 + lax.pmean(c, "a"), x), [P("a", None)], P("a", None),
               lambda x: looped(x.reshape(2, 4, 16)).reshape(8, 16)),
    "a scan": (lambda x: lax.scan(lambda c, y: (c + y, c), jnp.zeros_like(x[0]), x)[1], [P(None, "b")], P(None, "b"),
               lambda x: jnp.concatenate([jnp.zeros((1, 16)), x.cumsum(0)[:-1]])),
    "a branch": (lambda x: lax.cond(lax.axis_index("a") == 0, jnp.sin, jnp.cos, x), [P("a", None)], P("a", None),
                 lambda x: jnp.concatenate([jnp.sin(x[:4]), jnp.cos(x[4:])])),
    "functions that JAX has compiled": (lambda x: x / jnp.linalg.norm(x), [P("a", None)], P("a", None),
                                        lambda x: jnp.concatenate([y / jnp.linalg.norm(y) for y in (x[:4], x[4:])])),
    "only one axis": (lambda x: x + 1, [P("b", None)], P("b", None), lambda x: x + 1),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    function, given, made, whole = PROGRAMS[name]
    (x,) = arrays((8, 16))
    compiled = tt_torch.jax.compile(mapped(function, mesh_of((2, 2)), tuple(given), made), x)
    assert_equal(compiled(x), whole(x))


@pytest.mark.parametrize("sizes", [(1, 2), (2, 4), (4, 1), (1, 8)], ids=str)
def test_a_split_product(sizes):
    x, w = arrays((8, 16), (16, 12))
    function = mapped(product_of_parts, mesh_of(sizes), (P("a", "b"), P("b", None)), P("a", None))
    compiled = tt_torch.jax.compile(function, x, w)
    assert_equal(compiled(x, w), jnp.tanh(x) @ w)
    if sizes[1] > 1:
        assert op_histogram(decode(compiled.model.binary))["AllReduceOp"] == 1


def test_several_parts_with_whole_values_between(tmp_path):
    x, w = arrays((8, 16), (16, 16))

    def function(x, w):
        first = mapped(product_of_parts, mesh_of((2, 4)), (P("a", "b"), P("b", None)), P("a", None))
        second = mapped(lambda x: x - lax.pmax(x.max(), ("a", "b")), mesh_of((2, 4)), (P("a", "b"),), P("a", "b"))
        return second(jax.jit(first)(x, w) * 2) + 1

    compiled = tt_torch.jax.compile(function, x, w)
    y = jnp.tanh(x) @ w * 2
    assert_equal(compiled(x, w), y - y.max() + 1)
    compiled.model.save(tmp_path / "mesh.ttpkg")
    assert_equal(tt_torch.load(tmp_path / "mesh.ttpkg")(*(torch.from_dlpack(a) for a in (x, w))), y - y.max() + 1)


def test_gradients():
    x, w = arrays((8, 16), (16, 12))
    function = mapped(product_of_parts, mesh_of((2, 4)), (P("a", "b"), P("b", None)), P("a", None))
    gradient = jax.grad(lambda w, x: (function(x, w) ** 2).sum())
    expected = jax.grad(lambda w, x: ((jnp.tanh(x) @ w) ** 2).sum())(w, x)
    assert_equal(tt_torch.jax.compile(gradient, w, x)(w, x), expected)


def constrained(x):
    place = jax.sharding.NamedSharding(mesh_of((2, 2)), P("a", "b"))
    return lax.with_sharding_constraint(lax.with_sharding_constraint(x, place) ** 2, place)


@pytest.mark.parametrize("way", [mapped(lambda x: x**2, mesh_of((2, 2)), (P("a", "b"),), P("a", "b")), constrained])
def test_wide_integers_of_any_chip_are_an_error(way, tmp_path):
    """Here, the integers of the last chip leave 32 bits."""
    with jax.enable_x64(True):
        x = np.arange(16).reshape(4, 4)
        compiled = tt_torch.jax.compile(way, x)
        np.testing.assert_array_equal(compiled(x), x**2)
        compiled.model.save(tmp_path / "mesh.ttpkg")
        loaded = tt_torch.load(tmp_path / "mesh.ttpkg")
        x[3, 3] = 2**17
        for run in (compiled, lambda x: loaded(torch.from_numpy(x))):
            with pytest.raises(InexactError, match=r"stablehlo.multiply \(.*test_jax_meshes.py:\d+\) leave"):
                run(x)


def lowered(function, *args):
    return jax.jit(function).trace(*args).lower(lowering_platforms=("cpu",)).compiler_ir("stablehlo")


LOOP = (lambda x: lax.while_loop(lambda c: c.sum() > 1, lambda c: c / 2, jnp.exp(x)), "stablehlo.while")
FACTORS = (lambda x: jnp.linalg.qr(x)[1], "stablehlo.custom_call")


@pytest.mark.parametrize("function, op", [LOOP, FACTORS])
def test_steps_of_the_host_are_refused(function, op):
    """Steps of the host would give all chips the values of the first chip."""
    (x,) = arrays((8, 16))
    with pytest.raises(UnsupportedOpError, match=op) as caught:
        tt_torch.jax.compile(mapped(function, mesh_of((2, 2)), (P("a", None),), P("a", None)), x)
    assert "several chips" in str(caught.value) and "test_jax_meshes.py" in str(caught.value)


def test_a_program_of_one_chip_of_a_mesh_is_refused():
    text = """module attributes {ttcore.mesh_shape = array<i64: 1, 2>} {
        func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> } }"""
    with pytest.raises(CompileError, match="the program of each chip"):
        tt_torch.compile_stablehlo(text)


def test_a_device_with_another_number_of_chips_is_an_error():
    (x,) = arrays((8, 16))
    function = mapped(jnp.sin, mesh_of((2, 2)), (P("a", "b"),), P("a", "b"))
    with Device() as device, pytest.raises(DeviceError, match="2x2"):
        tt_torch.jax.compile(function, x, device=device)


def test_three_axes_are_refused():
    (x,) = arrays((8, 16))
    function = mapped(jnp.sin, mesh_of((2, 2, 2)), (P("a", "b"),), P("a", "b"))
    with pytest.raises(UnsupportedOpError, match="a mesh of one or two axes"):
        tt_torch.compile_stablehlo(lowered(function, x))


def test_another_order_of_the_axes_is_refused():
    (x,) = arrays((8, 16))
    function = mapped(jnp.sin, mesh_of((2, 4)), (P(("b", "a"), None),), P(("b", "a"), None))
    with pytest.raises(UnsupportedOpError, match="in the order of the mesh"):
        tt_torch.compile_stablehlo(lowered(function, x))


def test_bytecode_and_portable_artifacts():
    """torch-mlir cannot read the dialect of Shardy in bytes, so JAX's MLIR does."""
    (x,) = arrays((8, 16))
    function = jax.jit(mapped(lambda x: lax.psum(jnp.sin(x), "b"), mesh_of((2, 4)), (P("a", "b"),), P("a", None)))
    bytecode = io.BytesIO()
    lowered(function, x).operation.write_bytecode(bytecode)
    result = tt_torch.compile_stablehlo(bytecode.getvalue())(torch.tensor(np.asarray(x)))
    np.testing.assert_allclose(result.numpy(), jnp.sin(x).reshape(8, 4, 4).sum(1), rtol=1e-4, atol=1e-5)
    artifact = jax.export.export(function)(x).mlir_module_serialized
    assert mesh_shape(read_stablehlo(artifact).operation) == (2, 4)
    with pytest.raises(ModuleFormatError, match="JAX cannot read it"):
        read_stablehlo(bytecode.getvalue()[:-40])


def test_the_usual_form_of_text():
    x, w = arrays((8, 16), (16, 8))
    function = mapped(lambda x, w: lax.psum(x @ w, "b"), mesh_of((2, 4)), (P("a", "b"), P("b", None)), P("a", None))
    text = str(lowered(function, x, w))
    assert "= sdy.manual_computation(" in text
    compiled = tt_torch.compile_stablehlo(text)
    result = compiled(*(torch.tensor(np.asarray(each)) for each in (x, w)))
    np.testing.assert_allclose(result.numpy(), x @ w, rtol=1e-4, atol=1e-4)
    with pytest.raises(ModuleFormatError, match="in_shardings"):
        tt_torch.compile_stablehlo(text.replace("in_shardings", "in_shards"))

"""The fields of a binary about its mesh, its tensors and its collectives are those of tt-mlir's binaries.

Each test compares two binaries of the same function.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

jax = pytest.importorskip("jax", reason="the extra `jax` is not installed")

import tt_torch.jax  # noqa: E402
from tt_torch.wire.decode import decode  # noqa: E402

DATA = Path(__file__).parents[1] / "data" / "plugin"
COLLECTIVES = ("AllGatherOp", "AllReduceOp", "ReduceScatterOp", "PointToPointOp", "MeshPartitionOp")
# The numbers of tensors. The `AssignOp` that tt-mlir writes before point-to-point ops, to copy into its result. Fields
# of the other schema, whose defaults are those of a field that is not there.
OTHERS = ("global_id", "name", "optional_output_tensor", "math_approx_mode", "packer_l1_acc")

jnp, lax, P = jax.numpy, jax.lax, jax.sharding.PartitionSpec
ROWS, COLUMNS, WHOLE = P("x", None), P(None, "y"), P(None, None)

# Functions of a chip of 1x8: the whole shape, the parts of its argument and of its result.
ON_EIGHT: dict[str, tuple[Callable[..., Any], tuple[int, int], Any, Any]] = {
    "all_gather": (partial(lax.all_gather, axis_name="y", axis=1, tiled=True), (256, 1024), COLUMNS, WHOLE),
    "psum": (partial(lax.psum, axis_name="y"), (256, 1024), COLUMNS, WHOLE),
    "psum_scatter": (
        partial(lax.psum_scatter, axis_name="y", scatter_dimension=1, tiled=True), (256, 8192), COLUMNS, COLUMNS,
    ),
    "ppermute": (
        partial(lax.ppermute, axis_name="y", perm=[(i, (i + 1) % 8) for i in range(8)]), (256, 1024), COLUMNS, COLUMNS,
    ),
}  # fmt: skip


def plain(value: Any) -> Any:
    """A value of a message without empty fields and numbers of tensors. tt-mlir reduces tensors of four dimensions, and
    reshapes others before and after. So leading ones of shapes are left out."""
    if isinstance(value, list):
        return [plain(x) for x in value]
    if not isinstance(value, dict):
        return value
    found = {k: plain(x) for k, x in value.items() if x is not None and k not in OTHERS}
    for field in ("shape", "local_shape"):
        while found.get(field, [0])[0] == 1:
            found[field] = found[field][1:]
    if "scatter_dim" in found:
        found["scatter_dim"] -= len(value["in"]["desc"]["shape"])
    return found


def facts(binary: bytes) -> dict[str, Any]:
    program = decode(binary)["programs"][0]
    ops = [plain(op["type"]) for op in program["operations"]]
    return {
        "mesh_shape": program["mesh_shape"],
        "inputs": [plain(tensor["desc"]) for tensor in program["inputs"]],
        "outputs": [plain(tensor["desc"]) for tensor in program["outputs"]],
        "collectives": [op for op in ops if next(iter(op)) in COLLECTIVES],
    }


def ours(function: Any, mesh: Any, shapes: list[tuple[int, int]], given: list[Any], made: Any) -> dict[str, Any]:
    split = partial(jax.sharding.NamedSharding, mesh)
    jitted = jax.jit(function, in_shardings=tuple(map(split, given)), out_shardings=split(made))
    compiled = tt_torch.jax.compile(jitted, *[jax.ShapeDtypeStruct(shape, jnp.bfloat16) for shape in shapes])
    return facts(compiled.model.binary)


def mesh_of(*sizes: int) -> Any:
    return jax.sharding.AbstractMesh(sizes, ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)


def perceptron(x: Any, up: Any, down: Any) -> Any:
    return jax.nn.relu(x @ up) @ down


@pytest.mark.parametrize("sizes", [(1, 2), (1, 8), (2, 4)], ids=str)
def test_a_tensor_parallel_perceptron(sizes: tuple[int, int]) -> None:
    theirs = facts((DATA / f"tensor_parallel_{sizes[0]}x{sizes[1]}.ttnn").read_bytes())
    shapes, given = [(64, 512), (512, 2048), (2048, 512)], [ROWS, COLUMNS, P("y", None)]
    assert [next(iter(op)) for op in theirs["collectives"]] == ["AllReduceOp"]
    assert ours(perceptron, mesh_of(*sizes), shapes, given, ROWS) == theirs


@pytest.mark.parametrize("name", ON_EIGHT)
def test_collectives(name: str) -> None:
    function, shape, given, made = ON_EIGHT[name]
    mapped = jax.shard_map(function, mesh=(mesh := mesh_of(1, 8)), in_specs=(given,), out_specs=made, check_vma=False)
    found, theirs = ours(mapped, mesh, [shape], [given], made), facts((DATA / f"mesh8_{name}.ttnn").read_bytes())
    assert theirs["collectives"]
    # tt-mlir says of the input of such a function, and not of the one above, that a chip's part has the whole shape.
    assert [x.pop("local_shape") for x in found["inputs"]] == [x["shape"] for x in found["inputs"]]
    assert [x.pop("local_shape") for x in theirs["inputs"]] == [[256, 1024]]
    assert found == theirs

"""`sdy.manual_computation`: a part of a program that each chip computes with its part of the values.

JAX's `shard_map` makes it. Outside of it, each chip has all values. So its operands become each chip's own parts, and
its results are gathered:

    %r = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] (%p) { ... }

becomes `%p = mesh_shard(%x)`, the ops of the body, and `%r = mesh_shard(...)` in the other direction. torch-mlir has no
dialect `sdy`; in the generic form of MLIR, its attributes are read as text. The usual form above is first written in
the generic form by JAX's MLIR, which has the dialect.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from torch_mlir import ir

from tt_torch.dynamo.mesh_ops import TARGET
from tt_torch.errors import ShardingError, UnsupportedOpError
from tt_torch.mlir.context import describe
from tt_torch.mlir.functions import nested, replace
from tt_torch.mlir.mesh import Mesh, set_mesh
from tt_torch.mlir.types import Op, Value

WHOLE = "tt.whole_values"  # it marks a module for several chips whose inputs and results are whole values
NAME, CALL = "sdy.manual_computation", "tt.call"
TO_PARTS, TO_WHOLE = "full_to_shard", "shard_to_full"
ACCEPTED = "a mesh of one or two axes, and dimensions that are split along whole axes in the order of the mesh"
_MESH = re.compile(r'"([^"]*)"\s*=\s*(\d+)')
_SHARDING = re.compile(r"<@([\w.$-]+|\"[^\"]*\"), \[((?:\{[^{}]*\}(?:p\d+)?(?:, )?)*)\]")
_DIMENSION = re.compile(r"\{([^{}]*)\}")
Sharding = list[list[str]]  # the axes that split each dimension, by name


def is_in_usual_form(text: str) -> bool:
    """Whether the text of a module has manual computations in the usual form, which only the dialect can read."""
    return bool(re.search(rf"(?<![\"\w]){re.escape(NAME)}\b", text))


def with_calls_apart(text: str) -> str:
    """The text of a module in the generic form, whose calls get another name until the manual computations are inlined.
    MLIR finds no function for a call inside of an op that it does not know."""
    return text.replace('"func.call"(', f'"{CALL}"(') if f'"{NAME}"(' in text else text


def inline_manual_computations(module: ir.Module) -> None:
    """Replaces each `sdy.manual_computation`, and gives the module its mesh. Raises UnsupportedOpError for a form that
    is not ACCEPTED."""
    found = [op for op in nested(module) if op.name == NAME]
    if not found:
        return
    mesh, places = mesh_and_axes(module, found[0])
    set_mesh(module, mesh)
    with module.context:
        module.operation.attributes[WHOLE] = ir.UnitAttr.get()
    for op in found:
        with op.location, ir.InsertionPoint(op):
            _inline(op, places, mesh)
    for call in [op for op in nested(module) if op.name == CALL]:
        with call.location, ir.InsertionPoint(call):
            kinds, named = [r.type for r in call.results], {"callee": call.attributes["callee"]}
            replace(call, ir.Operation.create("func.call", kinds, list(call.operands), named))


def mesh_and_axes(module: ir.Module, op: Op) -> tuple[Mesh, dict[str, int]]:
    """The mesh of the module, and for each name of an axis with several chips, whether it is the rows (0) or the
    columns (1). Raises UnsupportedOpError, which names `op`, for a mesh that is not ACCEPTED."""
    axes = _axes_of(module, op)
    names = [name for name, size in axes.items() if size > 1]
    sizes = [axes[name] for name in names]
    if len(sizes) > 2:
        raise _unsupported(op)
    mesh: Mesh = (sizes[0], sizes[1]) if len(sizes) == 2 else (1, math.prod(sizes))
    return mesh, {name: 2 - len(sizes) + i for i, name in enumerate(names)}


def _axes_of(module: ir.Module, op: Op) -> dict[str, int]:
    """The sizes of the axes of the module's mesh."""
    meshes = [each.operation for each in module.body.operations if each.operation.name == "sdy.mesh"]
    if len(meshes) != 1:
        raise _unsupported(op)
    if "mesh" not in meshes[0].attributes:
        raise _unsupported(op)
    return {name: int(size) for name, size in _MESH.findall(str(meshes[0].attributes["mesh"]))}


def _unsupported(op: Op) -> UnsupportedOpError:
    name = op.name if op.name == NAME else "sdy.sharding"  # of an input or a result
    return UnsupportedOpError(name, "stablehlo", describe(op.location), f"it takes {ACCEPTED}")


def _shardings(op: ir.Operation, name: str) -> list[Sharding]:
    if name not in op.attributes:
        raise _unsupported(op)
    return shardings_in(str(op.attributes[name]))


def shardings_in(text: str) -> list[Sharding]:
    """The shardings in the text of an attribute."""
    found = _SHARDING.findall(text)
    return [[re.findall(r'"[^"]*"(?::\(\d+\)\d+)?', dim) for dim in _DIMENSION.findall(dims)] for _, dims in found]


def along(op: Op, names: Sequence[str], places: dict[str, int]) -> list[int]:
    """The axes of the mesh with these names; those of size 1 split nothing."""
    if any(":" in name for name in names):
        raise _unsupported(op)
    axes = [places[name.strip('"')] for name in names if name.strip('"') in places]
    if axes != sorted(axes):
        raise _unsupported(op)
    return axes


def _inline(op: ir.Operation, places: dict[str, int], mesh: Mesh) -> None:
    (body,) = op.regions[0].blocks
    for x, sharding, inner in zip(op.operands, _shardings(op, "in_shardings"), body.arguments, strict=True):
        part = shard(x, [along(op, names, places) for names in sharding], mesh, TO_PARTS)
        if part.type != inner.type:
            raise _unsupported(op)
        inner.replace_all_uses_with(part)
    *inside, end = list(body.operations)
    for each in inside:
        each.operation.move_before(op)
    for made, sharding, result in zip(end.operands, _shardings(op, "out_shardings"), op.results, strict=True):
        whole = shard(made, [along(op, names, places) for names in sharding], mesh, TO_WHOLE)
        if whole.type != result.type:
            raise _unsupported(op)
        result.replace_all_uses_with(whole)
    op.erase()


def shard(x: Value, dims: Sequence[Sequence[int]], mesh: Mesh, direction: str) -> Value:
    """Each chip's own part of a value, or the whole value of which the chips have parts. `dims` has the axes of the
    mesh that split each dimension, and `direction` is a word of tt-mlir. Raises ShardingError for parts of several
    sizes."""
    sizes, split = list(ir.RankedTensorType(x.type).shape), [-1, -1]
    for dim, axes in enumerate(dims):
        count = math.prod(mesh[axis] for axis in axes)
        if direction == TO_PARTS and sizes[dim] % count:
            raise ShardingError(tuple(sizes), f"dimension {dim} has no {count} equal parts")
        sizes[dim] = sizes[dim] // count if direction == TO_PARTS else sizes[dim] * count
        for axis in axes:
            split[axis] = dim
    if split == [-1, -1]:
        return x
    named = {"shard_direction": ir.StringAttr.get(direction), "shard_dims": ir.DenseI64ArrayAttr.get(split)}
    return _call("mesh_shard", x, sizes, named)


def partition(x: Value, dim: int, axis: int, mesh: Mesh) -> Value:
    """The own part of a value in the program of one chip. Raises ShardingError for parts of several sizes."""
    sizes = list(ir.RankedTensorType(x.type).shape)
    if sizes[dim] % mesh[axis]:
        raise ShardingError(tuple(sizes), f"dimension {dim} has no {mesh[axis]} equal parts")
    sizes[dim] //= mesh[axis]
    named = {"dim": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim), "axes": ir.DenseI64ArrayAttr.get([axis])}
    return _call("mesh_partition", x, sizes, named)


def _call(name: str, x: Value, sizes: Sequence[int], named: dict[str, ir.Attribute]) -> Value:
    attributes = {
        "call_target_name": ir.StringAttr.get(f"{TARGET}{name}"),
        "mhlo.frontend_attributes": ir.DictAttr.get(named),
    }
    kind = ir.RankedTensorType.get(sizes, ir.RankedTensorType(x.type).element_type)
    return ir.Operation.create("stablehlo.custom_call", [kind], [x], attributes).results[0]

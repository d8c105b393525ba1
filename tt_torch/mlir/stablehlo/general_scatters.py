"""Replaces scatters with general bodies, such as JAX's `x.at[i].apply(f, unique_indices=True)`, by plain ops. Says
which scatters are too large for the device.

If no element is written twice, `scatter(x, i, y, f)` is `scatter(x, i, f(gather(x, i), y))` with a body that returns
the update. The gather moves its starts into `x`, so it reads a window that reaches over an end elsewhere. The scatter
drops this window. If elements may be written twice, the specification leaves the order to the implementation, so such
a scatter stays as it is.
"""

from __future__ import annotations

from math import prod

from torch_mlir import ir
from torch_mlir._mlir_libs import _stablehlo

from tt_torch.mlir.functions import nested
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.bodies import applied, body_op, is_elementwise
from tt_torch.mlir.stablehlo.build import make

KNOWN = ("add", "multiply", "maximum", "minimum", "and", "or", "xor")  # bodies that combine in any order


def compares_many(op: ir.Operation) -> bool:
    """Whether a scatter that keeps the largest or the smallest elements has too many pairs of elements for the device,
    which compares each element of the result with each one that is written to its column. Booleans are such numbers."""
    from tt_torch.dynamo.decompositions.segments import LARGEST_PAIRS  # the import takes seconds

    x, updates, dims = op.results[0].type, op.operands[-1].type.shape, attrs.scatter(op)
    if body_op(op) not in (KNOWN if str(x.element_type) == "i1" else ("maximum", "minimum")):
        return False
    gone = {*dims.inserted_window_dims, *dims.input_batching_dims}
    inner = iter([updates[d] for d in dims.update_window_dims])
    window = [1 if d in gone else next(inner) for d in range(len(x.shape))]
    placed = {*gone, *dims.scattered_dims_to_operand_dims}
    columns = prod(n for d, n in enumerate(x.shape) if d not in placed and window[d] == n)
    return bool(columns) and prod(x.shape) * (prod(updates) // columns) > LARGEST_PAIRS


def scatter_results(module: ir.Module) -> None:
    for op in [op for op in nested(module) if op.name == "stablehlo.scatter" and _is_general(op) and _is_once(op)]:
        with module.context, ir.InsertionPoint(op), op.location:
            _replace(op)


def _is_general(op: ir.Operation) -> bool:
    body, count = op.regions[0].blocks[0], len(op.results)
    *ops, last = body.operations
    if count == 1 and (body_op(op) in KNOWN or (not ops and last.operands[0] == body.arguments[1])):
        return False
    kinds = [x.type.element_type for x in (*op.operands[:count], *op.operands[count + 1 :])]
    return is_elementwise(op.regions[0]) and kinds == [x.type.element_type for x in body.arguments]


def _is_once(op: ir.Operation) -> bool:
    """Whether each element is written at most once: there is one window, or the program says that all differ."""
    dims, updates = attrs.scatter(op), op.operands[len(op.results) + 1].type.shape
    windows = prod(size for d, size in enumerate(updates) if d not in dims.update_window_dims)
    return windows == 1 or ("unique_indices" in op.attributes and op.attributes["unique_indices"].value)


def _replace(op: ir.Operation) -> None:
    count = len(op.results)
    operands, indices, updates = op.operands[:count], op.operands[count], op.operands[count + 1 :]
    present = [_gathered(op, x, indices, y.type) for x, y in zip(operands, updates, strict=True)]
    new = applied(op.regions[0], [*present, *updates])
    for old, x, values in zip(op.results, operands, new, strict=True):
        old.replace_all_uses_with(_written(op, x, indices, values))
    op.erase()


def _gathered(op: ir.Operation, x: ir.Value, indices: ir.Value, updates: ir.RankedTensorType) -> ir.Value:
    """The elements of `x` in whose places the updates are written."""
    dims = attrs.scatter(op)
    gone, batching = list(dims.inserted_window_dims), list(dims.input_batching_dims)
    inner = iter([updates.shape[d] for d in dims.update_window_dims])
    sizes = [1 if d in (*gone, *batching) else next(inner) for d in range(len(x.type.shape))]
    numbers = _stablehlo.GatherDimensionNumbers.get(
        list(dims.update_window_dims), gone, batching, list(dims.scatter_indices_batching_dims),
        list(dims.scattered_dims_to_operand_dims), dims.index_vector_dim,
    )  # fmt: skip
    kind = ir.RankedTensorType.get(updates.shape, x.type.element_type)
    return make("gather", kind, x, indices, dimension_numbers=numbers, slice_sizes=ir.DenseI64ArrayAttr.get(sizes))


def _written(op: ir.Operation, x: ir.Value, indices: ir.Value, values: ir.Value) -> ir.Value:
    """The operand with other elements in the places of the updates."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    made = ir.Operation.create("stablehlo.scatter", [x.type], [x, indices, values], attributes, regions=1)
    scalar = ir.RankedTensorType.get([], x.type.element_type)
    body = ir.Block.create_at_start(made.regions[0], [scalar, scalar])
    with ir.InsertionPoint(body):
        ir.Operation.create("stablehlo.return", [], [body.arguments[1]])
    return made.results[0]

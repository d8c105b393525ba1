"""The ops of StableHLO that the host can compute on integers of 64 bits, and how each of them is called there.

A row gives the options of the function of this name in `driver/host_integers.py`, or None for a form that it lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from torch_mlir import ir

from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.bodies import body_op, only_op
from tt_torch.mlir.stablehlo.dtypes import DTYPES
from tt_torch.mlir.stablehlo.general_reductions import is_large, is_max_pool_gradient
from tt_torch.mlir.stablehlo.general_scatters import compares_many
from tt_torch.mlir.stablehlo.normalize import CONSTANTS, MOVES, NARROW_INTEGERS, element_name, short_name
from tt_torch.mlir.ttir.from_stablehlo.ordering import sort_keys
from tt_torch.mlir.types import Op, Value

Options = dict[str, Any]
MARK = "tt.on_host"  # on an op: the host computes it; on a loop, a branch or `main`: the host has some of its values
# This attribute lists positions of values that the host has in 64 bits. On a loop and on `main`, they are positions of
# arguments, and a loop has as many results. On a branch, they are positions of results.
WIDE_ARGUMENTS = "tt.wide_arguments"
PREFIX = "stablehlo."
# Custom calls: numbers of the host, for an op of the device.
IN_32_BITS, NEAREST, TOWARD_ZERO = "tt.in_32_bits", "tt.nearest", "tt.toward_zero"
ONNX_MODEL = "tt.onnx_model"  # a custom call: nodes of an ONNX model, which the host runs
PLAIN = """
abs add and clamp count_leading_zeros divide dynamic_update_slice maximum minimum multiply negate not
dot optimization_barrier or popcnt power remainder select shift_left shift_right_arithmetic shift_right_logical sign
subtract xor
"""  # ops without options
OF_BFLOAT16 = ("bitcast_convert", "convert", "scatter")  # the host computes these also with bfloat16, which NumPy lacks
REDUCED = ("add", "and", "maximum", "minimum", "multiply", "or", "xor")
NO_FORM = "TTNN has no op for it"  # why the host computes an op
INTEGERS = ("i64", "ui64", *NARROW_INTEGERS)
LARGEST_WINDOWS = 2**32  # elements of all windows of a reduction


def _dtype(x: Value) -> str:
    return str(DTYPES[element_name(x)]).removeprefix("torch.")


def _shape(op: ir.Operation) -> list[int]:
    return list(op.results[0].type.shape)


def _constant(op: ir.Operation) -> Options:
    value, kind = op.attributes["value"], _bitcast_convert(op)
    one = attrs.splat(value)
    data = attrs.elements(value) if one is None else np.array(one, kind["dtype"])
    return {"data": data.astype(kind["dtype"]).tobytes().hex(), **kind}


def _bitcast_convert(op: ir.Operation) -> Options:
    return {"dtype": _dtype(op.results[0]), "shape": _shape(op)}


def _gather(op: ir.Operation) -> Options:
    dims = attrs.gather(op)
    batch = list(dims.operand_batching_dims)
    return {
        "windows": list(dims.offset_dims), "batch": batch, "batch_of_indices": list(dims.start_indices_batching_dims),
        "dims": list(dims.start_index_map), "vector": dims.index_vector_dim, "sizes": attrs.ints(op, "slice_sizes"),
        "gone": [*dims.collapsed_slice_dims, *batch],
    }  # fmt: skip


def _scatter(op: ir.Operation) -> Options | None:
    dims, batch = attrs.scatter(op), list(attrs.scatter(op).input_batching_dims)
    block, gone = op.regions[0].blocks[0], [*dims.inserted_window_dims, *batch]
    replaces = list(list(block.operations)[-1].operands) == [block.arguments[1]] if len(block.arguments) == 2 else False
    if len(op.results) != 1 or not (replaces or body_op(op) in REDUCED):
        return None
    inner = iter([op.operands[2].type.shape[dim] for dim in sorted(dims.update_window_dims)])
    return {
        "body": "" if replaces else body_op(op), "windows": list(dims.update_window_dims), "batch": batch,
        "batch_of_indices": list(dims.scatter_indices_batching_dims), "dims": list(dims.scattered_dims_to_operand_dims),
        "vector": dims.index_vector_dim, "gone": gone,
        "sizes": [1 if dim in gone else next(inner) for dim in range(len(_shape(op)))],
    }  # fmt: skip


def _sort(op: ir.Operation) -> Options | None:
    block = op.regions[0].blocks[0]
    keys = sort_keys(list(block.operations)[-1].operands[0], list(block.arguments))
    return None if keys is None else {"dim": attrs.integer(op, "dimension"), "keys": list(map(list, keys))}


def _reduce(op: ir.Operation) -> Options | None:
    body = body_op(op)
    known = body in REDUCED and len(op.results) == 1
    return {"body": body, "dims": attrs.ints(op, "dimensions")} if known else None


def _reduce_window(op: ir.Operation) -> Options | None:
    body, rank = body_op(op), len(op.operands[0].type.shape)
    sizes = attrs.ints(op, "window_dimensions")
    if body not in REDUCED or len(op.results) != 1 or prod(_shape(op)) * prod(sizes) > LARGEST_WINDOWS:
        return None
    pads = attrs.ints(op, "padding") or [0] * 2 * rank
    names = {"steps": "window_strides", "base": "base_dilations", "dilations": "window_dilations"}
    ways = {ours: attrs.ints(op, theirs) or [1] * rank for ours, theirs in names.items()}
    return {"body": body, "sizes": sizes, **ways, "low": pads[::2], "high": pads[1::2]}


def _select_and_scatter(op: ir.Operation) -> Options | None:
    select, body = map(only_op, op.regions)
    pads = attrs.ints(op, "padding") or [0] * 2 * len(_shape(op))
    sizes, ones = attrs.ints(op, "window_dimensions"), [1] * len(_shape(op))
    all_windows = prod(op.operands[1].type.shape) * prod(sizes)
    known = select in ("GE", "GT", "LE", "LT") and body in REDUCED
    if not known or min(pads, default=0) < 0 or 0 in _shape(op) or all_windows > LARGEST_WINDOWS:
        return None
    ways = {"sizes": sizes, "steps": attrs.ints(op, "window_strides") or ones, "low": pads[::2], "high": pads[1::2]}
    return {"select": select, "body": body, **ways}


def _convolution(op: ir.Operation) -> Options | None:
    if any(0 in x.type.shape for x in (*op.operands, *op.results)):
        return None
    dims = attrs.convolution(op)
    ones, spatial = [1] * len(dims.input_spatial_dimensions), list(dims.input_spatial_dimensions)
    names = {"steps": "window_strides", "base": "lhs_dilation", "dilations": "rhs_dilation"}
    pads = attrs.ints(op, "padding") or [0, 0] * len(ones)
    turned = attrs.ints(op, "window_reversal") or []
    return {
        "of_x": [dims.input_batch_dimension, dims.input_feature_dimension, *spatial],
        "of_kernel": [
            dims.kernel_output_feature_dimension, dims.kernel_input_feature_dimension, *dims.kernel_spatial_dimensions,
        ],
        "of_result": [
            dims.output_batch_dimension, dims.output_feature_dimension, *dims.output_spatial_dimensions,
        ],
        **{ours: attrs.ints(op, theirs) or ones for ours, theirs in names.items()},
        "low": pads[::2], "high": pads[1::2], "turned": [i for i, each in enumerate(turned) if each],
        "groups": attrs.integer(op, "feature_group_count"), "batches": attrs.integer(op, "batch_group_count"),
    }  # fmt: skip


def _dot_general(op: ir.Operation) -> Options:
    dims = attrs.dot(op)
    return {
        "batch": [list(dims.lhs_batching_dimensions), list(dims.rhs_batching_dimensions)],
        "contracting": [list(dims.lhs_contracting_dimensions), list(dims.rhs_contracting_dimensions)],
    }


def _ints(**names: str) -> Callable[[ir.Operation], Options]:
    """Options that are lists of integers in the op, by their names there."""
    return lambda op: {ours: attrs.ints(op, theirs) for ours, theirs in names.items()}


ROWS: dict[str, Callable[[ir.Operation], Options | None]] = {
    **dict.fromkeys(PLAIN.split(), lambda op: {}),
    "bitcast_convert": _bitcast_convert,
    "broadcast_in_dim": lambda op: {"shape": _shape(op), "dims": attrs.ints(op, "broadcast_dimensions")},
    "compare": lambda op: {"direction": attrs.direction(op)},
    "concatenate": lambda op: {"dim": attrs.integer(op, "dimension")},
    "constant": _constant,
    "convert": lambda op: {"dtype": _dtype(op.results[0])},
    "convolution": _convolution,
    "dot_general": _dot_general,
    "dynamic_slice": _ints(sizes="slice_sizes"),
    "gather": _gather,
    "iota": lambda op: {**_bitcast_convert(op), "dim": attrs.integer(op, "iota_dimension")},
    "pad": _ints(low="edge_padding_low", high="edge_padding_high", between="interior_padding"),
    "reduce": _reduce,
    "reduce_window": _reduce_window,
    "reshape": lambda op: {"shape": _shape(op)},
    "reverse": _ints(dims="dimensions"),
    "scatter": _scatter,
    "select_and_scatter": _select_and_scatter,
    "slice": _ints(begins="start_indices", ends="limit_indices", steps="strides"),
    "sort": _sort,
    "top_k": lambda op: {"k": attrs.integer(op, "k")},
    "transpose": _ints(dims="permutation"),
}


def lacks_form(op: ir.Operation) -> bool:
    """Whether only the host can compute an op: a power of integers, unless the exponent is a constant of at least 0, a
    scatter that combines the bits of integers or compares many elements, the bits of float64 as other numbers, or large
    windows."""
    if short_name(op) == "select_and_scatter":
        return is_large(op) and not is_max_pool_gradient(op)
    if short_name(op) == "bitcast_convert":
        kinds = {element_name(x) for x in (*op.operands, *op.results)}
        return "f64" in kinds and len(kinds) > 1 and kinds.isdisjoint(("i64", "ui64"))
    if short_name(op) == "scatter" and len(op.results) == 1:
        bits = ("xor",) if element_name(op.results[0]) == "i1" else ("and", "or", "xor")
        return body_op(op) in bits or compares_many(op)
    if short_name(op) != "power" or element_name(op.results[0]) not in INTEGERS:
        return False
    x = op.operands[1]
    while not isinstance(x.owner, ir.Block) and x.owner.name in MOVES:
        x = x.owner.operands[0]
    if isinstance(x.owner, ir.Block) or x.owner.name not in CONSTANTS:
        return True
    exponent = attrs.splat(x.owner.attributes["value"])
    return exponent is None or exponent < 0


def is_marked(op: Op) -> bool:
    return MARK in op.operation.attributes


def mark(op: Op, reason: str = "") -> None:
    """Notes that the host computes an op. Users are told of it if there is a reason."""
    op.operation.attributes[MARK] = ir.StringAttr.get(reason, op.operation.context)


def mark_wide(op: Op, positions: Sequence[int]) -> None:
    """Notes which arguments of a loop or of `main`, or which results of a branch, the host has in 64 bits."""
    mark(op)
    op.operation.attributes[WIDE_ARGUMENTS] = ir.DenseI64ArrayAttr.get(positions, op.operation.context)


def function_of(op: ir.Operation) -> tuple[str, Options] | None:
    """The name and the options of the host's function for an op; None if the host has none."""
    if op.name == "stablehlo.custom_call":
        name = str(op.attributes["call_target_name"]).strip('"')
        if name == ONNX_MODEL:
            model, by_reference = (op.attributes[each].value for each in ("tt.model", "tt.by_reference"))
            return "onnx_model", {"model": model, "by_reference": by_reference}
        if name not in (IN_32_BITS, NEAREST, TOWARD_ZERO):
            return None
        reader = {"op": op.attributes["tt.reader"].value} if name == IN_32_BITS else {}
        return PREFIX + name.removeprefix("tt."), reader
    name = "constant" if op.name in CONSTANTS else short_name(op)
    if name not in ROWS or ("broadcast_dimensions" in op.attributes and name != "broadcast_in_dim"):
        return None
    if not all(_is_plain(x, name in OF_BFLOAT16) for x in (*op.operands, *op.results)):
        return None
    options = ROWS[name](op)
    return None if options is None else (PREFIX + name, options)


def _is_plain(x: Value, bfloat16: bool) -> bool:
    """Whether NumPy has a form for a value: numbers of fixed sizes, and `bfloat16` if the op has a way around."""
    name = element_name(x)
    return name in DTYPES and (bfloat16 or name != "bf16") and "complex" not in name and x.type.has_static_shape

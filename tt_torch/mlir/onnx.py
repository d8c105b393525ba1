"""Imports an ONNX model into the torch dialect and lowers it to StableHLO, by torch-mlir.

Matrices and filters become arguments of the program, as the weights of a PyTorch model do. All other initializers are
constants of the program, because torch-mlir needs the values of shapes, axes, scales and the like.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.errors import CompileError, UnsupportedOpError
from tt_torch.extras import require
from tt_torch.mlir import pipeline
from tt_torch.mlir.child import NativeCrash
from tt_torch.mlir.context import describe, make_context, node_of
from tt_torch.mlir.functions import main, mark_arguments
from tt_torch.mlir.guard import run_guarded
from tt_torch.mlir.onnx_casts import cast_constants, outline_casts, write_casts
from tt_torch.mlir.onnx_corrections import correct, refill
from tt_torch.mlir.onnx_given import Given, check_arguments
from tt_torch.mlir.onnx_host import LATE, Part, outline_parts, take_parts_out, write_parts
from tt_torch.mlir.onnx_loops import Loop, outline_loops, take_loops_out, write_loops
from tt_torch.mlir.onnx_preparing import DECIDING, prepared
from tt_torch.mlir.onnx_rewrites import rewrite
from tt_torch.mlir.onnx_sizes import Shapes, check_constants, fix_sizes, forget_shapes, inferred, refuse_unknown
from tt_torch.mlir.stablehlo.blame import first_failing
from tt_torch.mlir.stablehlo.lowering import KEPT, TO_STABLEHLO, unsupported_by

if TYPE_CHECKING:
    import onnx

TO_TORCH = f"torch-onnx-to-torch-backend-pipeline{{backend-legal-ops={KEPT}}}"
# The types of inputs and results. The device computes 64-bit numbers in 32 bits, and narrow integers in wider ones.
TYPES = frozenset(
    "FLOAT FLOAT16 BFLOAT16 DOUBLE BOOL INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 COMPLEX64 COMPLEX128".split()
)
PLAIN_INITIALIZERS = 4  # from this version of its format on, ONNX infers types of initializers that are no inputs
WEIGHT_DIMENSIONS = 2  # float initializers with at least this number of dimensions are weights


def onnx_to_stablehlo(
    model: onnx.ModelProto,
    config: CompilerConfig,
    constants: Mapping[str, torch.Tensor] | None = None,
    shapes: Shapes | None = None,
    sizes: Mapping[str, int] = MappingProxyType({}),
) -> tuple[ir.Module, dict[str, torch.Tensor]]:
    """The StableHLO of a model, and its weights by name, which are the last arguments of `main`.

    `model` must have passed `check_model`, and is not changed. `constants` has the values of some inputs, `shapes` has
    the shapes of inputs with open dimensions, and `sizes` has the sizes of dimensions with names. Raises CompileError
    for a dimension that stays open, and UnsupportedOpError for an op that torch-mlir does not know.
    """
    given = Given({} if constants is None else constants, {} if shapes is None else shapes, sizes)
    check_arguments(given)
    weights = _weights(model.graph)
    return _lowered(model, weights, config, given), _tensors(weights)


def _lowered(
    model: onnx.ModelProto,
    weights: Mapping[str, onnx.TensorProto],
    config: CompilerConfig,
    given: Given,
) -> ir.Module:
    named, loops, parts = _prepared(model, weights, given)
    module = _imported(named)
    kinds = ["input"] * (len(main(module).arguments) - len(weights)) + ["parameter"] * len(weights)
    with module.context, ir.Location.unknown():
        mark_arguments(main(module), kinds)
        module.operation.attributes["tt.composites"] = ir.DictAttr.get({})
        outline_casts(module)
        outline_loops(module)
        outline_parts(module)
    _refusing(lambda module, config: run_guarded(module, TO_TORCH))(module, config)
    steps = [(name, _refusing(step)) for name, step in pipeline.TO_STABLEHLO]
    pipeline.run_steps(module, steps, config, pipeline.Timings())
    _keep_order(module)
    with module.context:
        write_casts(module)
        write_parts(module, parts)
        write_loops(module, loops, [_lowered(loop.body, {}, config, Given({}, {}, {})) for loop in loops])
    return module


def _keep_order(module: ir.Module) -> None:
    """Equal elements keep their order in sorts, because TopK takes those with the lowest positions. torch-mlir leaves
    their order open."""
    for op in main(module).regions[0].blocks[0].operations:
        if op.operation.name == "stablehlo.sort":
            op.operation.attributes["is_stable"] = ir.BoolAttr.get(True, module.context)


def _refusing(step: Callable[[ir.Module, CompilerConfig], object]) -> Callable[[ir.Module, CompilerConfig], None]:
    """A step that does the same, but raises UnsupportedOpError for the node with which torch-mlir fails or crashes."""

    def run(module: ir.Module, config: CompilerConfig) -> None:
        try:
            step(module, config)
        except ir.MLIRError as error:
            raise unsupported_by(module, error) or _failing(module, error) from error
        except NativeCrash as error:
            raise _failing(module, error) from error

    return run


def _failing(module: ir.Module, error: ir.MLIRError | NativeCrash) -> UnsupportedOpError:
    """The error that names the node of a diagnostic, or the first node that fails by itself."""
    location, detail = None, str(error)
    if isinstance(error, ir.MLIRError):
        location, detail = error.error_diagnostics[0].location, error.error_diagnostics[0].message
    if location is None or not node_of(location)[1]:
        location = first_failing(main(module), lambda alone: run_guarded(alone, TO_TORCH, *TO_STABLEHLO))
    op = node_of(location)[1] if location else ""
    where = describe(location) if location else "no single node is the cause"
    return UnsupportedOpError(op or "the ONNX model", "stablehlo", where, f"torch-mlir fails: {detail}")


def _prepared(
    model: onnx.ModelProto,
    weights: Mapping[str, onnx.TensorProto],
    given: Given,
) -> tuple[onnx.ModelProto, list[Loop], list[Part]]:
    """A copy of the model, its loops, and what the host computes. In the copy, the weights are the last inputs, all
    values have types, and all nodes have names for messages."""
    inputs = input_names(model)
    if unknown := given.constants.keys() - set(inputs):
        raise CompileError(f"the ONNX model has no input {min(unknown)!r}; its inputs are {', '.join(inputs)}")
    arrays = {name: _array(value) for name, value in given.constants.items()}
    check_constants(model.graph.input, arrays)
    names = [name for name in inputs if name not in given.constants]
    for value in (*model.graph.input, *model.graph.output):
        if other := other_type(value):
            raise CompileError(f"{value.name!r} of the ONNX model has the type {other}, which the device does not have")
    fixed = _without(model, weights)
    fix_sizes([value for value in fixed.graph.input if value.name in names], given.shapes, given.sizes)
    declared = forget_shapes(fixed.graph.output)
    copy, parts = prepared(fixed, arrays)
    loops = take_loops_out(copy)
    rewrite(copy)
    take_parts_out(copy, LATE, DECIDING, parts)
    correct(copy)
    known = {value.name for value in copy.graph.initializer}  # old models have them among their inputs, too
    refill(copy.graph.input, [value for value in copy.graph.input if value.name not in known])
    copy.ir_version = max(copy.ir_version, PLAIN_INITIALIZERS)
    cast_constants(copy)
    copy = inferred(copy, declared)
    refuse_unknown(copy.graph)
    for number, node in enumerate(copy.graph.node):
        name = re.sub(r"\W", "_", node.name) or f"{node.op_type}_{number}"
        node.name = f"{name}: onnx.{node.op_type}"  # wire/locations.py reads this form
    return copy, loops, parts


def _tensors(weights: Mapping[str, onnx.TensorProto]) -> dict[str, torch.Tensor]:
    to_array = onnx_package().numpy_helper.to_array
    return {name: torch.from_numpy(to_array(weight).copy()) for name, weight in weights.items()}


def _weights(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    """The weights by name: initializers, and values of `Constant` nodes, because PaddlePaddle exports weights so."""
    tensors = {value.name: value for value in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            tensors[node.output[0]] = node.attribute[0].t
    return {name: tensor for name, tensor in tensors.items() if _is_weight(tensor)}


def _without(model: onnx.ModelProto, weights: Mapping[str, onnx.TensorProto]) -> onnx.ModelProto:
    """A copy of the model with the weights as its last inputs. Their values are not copied: they may have gigabytes."""
    onnx = onnx_package()
    copy = onnx.ModelProto()
    _copy_fields(model, copy, "graph")
    _copy_fields(model.graph, copy.graph, "initializer", "input", "node")
    copy.graph.initializer.extend(value for value in model.graph.initializer if value.name not in weights)
    copy.graph.node.extend(node for node in model.graph.node if not weights.keys() & node.output)
    copy.graph.input.extend(value for value in model.graph.input if value.name not in weights)
    copy.graph.input.extend(onnx.helper.make_tensor_value_info(n, w.data_type, w.dims) for n, w in weights.items())
    return copy


def _copy_fields(source: Any, target: Any, *left_out: str) -> None:
    """Copies the fields of a protobuf message into an empty message, except the fields in `left_out`."""
    for field, value in source.ListFields():
        if field.name in left_out:
            continue
        if hasattr(value, "extend"):
            getattr(target, field.name).extend(value)
        elif hasattr(value, "CopyFrom"):
            getattr(target, field.name).CopyFrom(value)
        else:
            setattr(target, field.name, value)


def _array(value: torch.Tensor) -> np.ndarray:
    """A tensor as a NumPy array. bfloat16 becomes the dtype that the package `onnx` has for it."""
    value = value.detach().cpu()
    if value.dtype != torch.bfloat16:
        return value.numpy()
    kind = onnx_package().helper.tensor_dtype_to_np_dtype(onnx_package().TensorProto.BFLOAT16)
    return value.contiguous().view(torch.int16).numpy().view(kind)


def _is_weight(value: onnx.TensorProto) -> bool:
    onnx = onnx_package()
    floats = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE)
    return len(value.dims) >= WEIGHT_DIMENSIONS and value.data_type in floats


def other_type(value: onnx.ValueInfoProto) -> str:
    """The name of the type of an input or a result, if it is not among TYPES; "" otherwise."""
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":  # a result may have no type before types are inferred
        return kind.removesuffix("_type") if kind else ""
    name = onnx_package().TensorProto.DataType.Name(value.type.tensor_type.elem_type)
    return "" if name in TYPES else name.lower()


def _imported(model: onnx.ModelProto) -> ir.Module:
    """The model in the torch dialect, with ONNX's ops, as the function `main`. Raises CompileError if this fails."""
    from onnx.shape_inference import InferenceError
    from torch_mlir.extras import onnx_importer

    info = onnx_importer.ModelInfo(model)
    module = info.create_module(context=make_context())
    try:
        onnx_importer.NodeImporter.define_function(info.main_graph, module.operation).import_all()
    except (onnx_importer.OnnxImportError, InferenceError) as error:
        raise CompileError(f"torch-mlir cannot read the ONNX model: {error}") from error
    for function in module.body.operations:
        if function.name.value == model.graph.name:
            function.attributes["sym_name"] = ir.StringAttr.get("main", module.context)
    return module


def input_names(model: onnx.ModelProto) -> list[str]:
    """The names of the inputs that have no value in the model."""
    given = {value.name for value in model.graph.initializer}
    return [value.name for value in model.graph.input if value.name not in given]


def read_onnx(path: Path) -> onnx.ModelProto:
    """The model in a file. Raises CompileError for a file without one, OSError, and the errors of `onnx_package`."""
    onnx = onnx_package()
    try:
        return onnx.load(path)
    except OSError:
        raise
    except Exception as error:  # it raises errors of protobuf, of its own and of others
        raise CompileError(f"{path} is no ONNX model: {error}") from error


def onnx_package() -> ModuleType:
    """The package `onnx`. Raises ExtraMissingError if a package of the extra `onnx` is not installed."""
    require("onnx")
    import onnx

    return onnx

"""Imports an ONNX model into the torch dialect and lowers it to StableHLO, by torch-mlir.

Matrices and filters become arguments of the program, as the weights of a PyTorch model do. All other initializers are
constants of the program, because torch-mlir needs the values of shapes, axes, scales and the like.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import torch
from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.errors import CompileError
from tt_torch.extras import require
from tt_torch.mlir import pipeline
from tt_torch.mlir.context import make_context
from tt_torch.mlir.functions import main, mark_arguments
from tt_torch.mlir.guard import run_guarded
from tt_torch.mlir.onnx_corrections import correct
from tt_torch.mlir.stablehlo.lowering import KEPT, unsupported_by

if TYPE_CHECKING:
    import onnx

TO_TORCH = f"torch-onnx-to-torch-backend-pipeline{{backend-legal-ops={KEPT}}}"
WEIGHT_DIMENSIONS = 2  # float initializers with at least this number of dimensions are weights


def onnx_to_stablehlo(model: onnx.ModelProto, config: CompilerConfig) -> tuple[ir.Module, dict[str, torch.Tensor]]:
    """The StableHLO of a model, and its weights by name, which are the last arguments of `main`.

    `model` is not changed. Raises CompileError for a model with open dimensions, UnsupportedOpError for an op that
    torch-mlir does not know, and ExtraMissingError if the package `onnx` is not installed.
    """
    named, weights = _prepared(model)
    module = _imported(named)
    kinds = ["input"] * (len(main(module).arguments) - len(weights)) + ["parameter"] * len(weights)
    with module.context, ir.Location.unknown():
        mark_arguments(main(module), kinds)
        module.operation.attributes["tt.composites"] = ir.DictAttr.get({})
    try:
        run_guarded(module, TO_TORCH)
    except ir.MLIRError as error:
        raise unsupported_by(module, error) or error from error
    pipeline.run_steps(module, pipeline.TO_STABLEHLO, config, pipeline.Timings())
    return module, weights


def _prepared(model: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, torch.Tensor]]:
    """A copy of the model, and its weights by name. The copy has them as its last inputs, the types of all values, and
    names of nodes for messages."""
    onnx = onnx_package()
    names = input_names(model)
    inputs = [value for value in model.graph.input if value.name in names]
    for value in inputs:
        _require_static(value)
    floats = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE)
    is_weight = [len(v.dims) >= WEIGHT_DIMENSIONS and v.data_type in floats for v in model.graph.initializer]
    weights = [value for value, is_one in zip(model.graph.initializer, is_weight, strict=True) if is_one]
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    correct(copy)
    del copy.graph.input[:], copy.graph.initializer[:]
    copy.graph.input.extend(inputs)
    copy.graph.input.extend(onnx.helper.make_tensor_value_info(w.name, w.data_type, w.dims) for w in weights)
    rest = (value for value, is_one in zip(model.graph.initializer, is_weight, strict=True) if not is_one)
    copy.graph.initializer.extend(rest)
    for number, node in enumerate(copy.graph.node):
        name = re.sub(r"\W", "_", node.name) or f"{node.op_type}_{number}"
        node.name = f"{name}: onnx.{node.op_type}"  # wire/locations.py reads this form
    tensors = {w.name: torch.from_numpy(onnx.numpy_helper.to_array(w).copy()) for w in weights}
    return onnx.shape_inference.infer_shapes(copy, data_prop=True), tensors


def _require_static(value: onnx.ValueInfoProto) -> None:
    """Raises CompileError for an input with a dimension that is no number."""
    for number, dimension in enumerate(value.type.tensor_type.shape.dim):
        if not dimension.HasField("dim_value"):
            size = repr(dimension.dim_param) if dimension.dim_param else "unknown"
            raise CompileError(
                f"dimension {number} of the ONNX input {value.name!r} is {size}; give all inputs fixed sizes, for "
                "example with onnx.tools.update_model_dims"
            )


def _imported(model: onnx.ModelProto) -> ir.Module:
    """The model in the torch dialect, with ONNX's ops, as the function `main`. Raises CompileError."""
    from torch_mlir.extras import onnx_importer

    info = onnx_importer.ModelInfo(model)
    module = info.create_module(context=make_context())
    importer = onnx_importer.NodeImporter.define_function(info.main_graph, module.operation)
    try:
        importer.import_all()
    except onnx_importer.OnnxImportError as error:
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
    """The model in a file. Raises CompileError for a file without one, and what `onnx_package` raises."""
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

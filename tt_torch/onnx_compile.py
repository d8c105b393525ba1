"""ONNX models: compiled for a device, or run by ONNX Runtime.

This needs the packages `onnx` and `onnxruntime`: pip install 'tt-torch[onnx]'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from torch_mlir import ir

from tt_torch.bringup.op_by_op import run_module
from tt_torch.config import OP_BY_OP, CompileDepth, CompilerConfig
from tt_torch.driver.compile import compile_module
from tt_torch.driver.devices import Device
from tt_torch.driver.onnx import compile_onnx as compile_to_model
from tt_torch.driver.stablehlo import TensorType, in_a_list, input_types
from tt_torch.extras import require
from tt_torch.mlir.onnx import input_names, onnx_to_stablehlo
from tt_torch.mlir.onnx_given import check_model
from tt_torch.mlir.onnx_sizes import Shapes

if TYPE_CHECKING:
    import onnx
    import onnxruntime

Tensors: TypeAlias = Sequence[torch.Tensor]
Inputs: TypeAlias = torch.Tensor | Tensors | Mapping[str, torch.Tensor]
Run: TypeAlias = Callable[[Tensors], list[torch.Tensor]]


class OnnxProgram:
    """A compiled ONNX model: takes tensors in order or by name, and returns a list of tensors.

    `inputs` has the name of each input, with its shape and dtype.
    """

    def __init__(self, inputs: dict[str, TensorType], run: Run) -> None:
        self.inputs, self._run = inputs, run

    def __call__(self, *inputs: torch.Tensor, **by_name: torch.Tensor) -> list[torch.Tensor]:
        rest = list(self.inputs)[len(inputs) :]
        if len(inputs) > len(self.inputs) or set(rest) != set(by_name):
            raise TypeError(f"the inputs of this model are {', '.join(self.inputs) or 'none'}")
        return self._run([*inputs, *(by_name[name] for name in rest)])


def compile_onnx(
    model_proto: onnx.ModelProto,
    compiler_config: CompilerConfig | None = None,
    device: Device | None = None,
    *,
    shapes: Shapes | None = None,
) -> OnnxProgram:
    """Compiles an ONNX model for a device; None is the default device.

    `shapes` gives the shapes of inputs with open dimensions, by their names; `shapes_of` has those of tensors.
    Environment variables override `compiler_config`. Below the depth EXECUTE, ONNX Runtime computes the results. At the
    op-by-op depths, the first call also compiles each op of the model's StableHLO by itself and fills the results file.
    Raises CompileError, UnsupportedOpError for an op that the device does not support, and ExtraMissingError if the
    ONNX packages are not installed.
    """
    config = (compiler_config or CompilerConfig()).for_compilation(of_pytorch=False)
    if config.compile_depth == CompileDepth.EXECUTE:
        compiled = compile_to_model(model_proto, config, shapes=shapes, device=device)
        types = [(form.shape, form.dtype) for form in compiled.tensor_forms.values()]
        inputs = dict(zip(input_names(model_proto), types, strict=True))
        return OnnxProgram(inputs, lambda inputs: in_a_list(compiled(*inputs)))
    check_model(model_proto)
    module, weights = onnx_to_stablehlo(model_proto, config, shapes=shapes)
    inputs = dict(zip(input_names(model_proto), input_types(module), strict=False))  # the weights follow
    return OnnxProgram(inputs, _runner(model_proto, module, weights, config))


def _runner(
    model: onnx.ModelProto,
    module: ir.Module,
    weights: Mapping[str, torch.Tensor],
    config: CompilerConfig,
) -> Run:
    """Returns the function that computes the results below the depth EXECUTE."""
    if config.compile_depth == CompileDepth.TTNN_IR:
        compile_module(module, config)
    session = prepare_inference_session(model)
    to_take_apart = [module] if config.compile_depth in OP_BY_OP else []

    def run(inputs: Tensors) -> list[torch.Tensor]:
        if to_take_apart:
            run_module(to_take_apart.pop(), [*inputs, *weights.values()], config)
        return onnx_output_to_torch(session.run(None, torch_input_to_onnx(session, inputs)))

    return run


def prepare_inference_session(
    model_proto: onnx.ModelProto, intra_op_num_threads: int = 1, inter_op_num_threads: int = 1
) -> onnxruntime.InferenceSession:
    """ONNX Runtime's session of a model, with these numbers of threads within and between ops.

    Raises ExtraMissingError if a package of the extra `onnx` is not installed.
    """
    require("onnx")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = intra_op_num_threads, inter_op_num_threads
    return onnxruntime.InferenceSession(model_proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run_model_proto(
    model_proto: onnx.ModelProto, inputs: Inputs, sess: onnxruntime.InferenceSession | None = None
) -> list[np.ndarray]:
    """The results of ONNX Runtime, as NumPy arrays. Raises ValueError for another number of inputs."""
    session = sess or prepare_inference_session(model_proto)
    return list(session.run(None, torch_input_to_onnx(session, inputs)))


def torch_input_to_onnx(sess: onnxruntime.InferenceSession, torch_input: Inputs) -> dict[str, np.ndarray]:
    """The inputs of a session by name. A sequence is taken in order, and so is a mapping that has none of their names.

    NumPy has no bfloat16, so bfloat16 tensors become float32. Raises ValueError for another number of inputs, and for a
    mapping that has some of the names, but not all, or others beside them.
    """
    by_name = _by_name([value.name for value in sess.get_inputs()], torch_input)
    return {name: _array(value) for name, value in by_name.items()}


def shapes_of(model: onnx.ModelProto, inputs: Inputs) -> Shapes:
    """The shapes of the inputs of a model by name; `inputs` and the errors are as in `torch_input_to_onnx`."""
    return {name: tuple(value.shape) for name, value in _by_name(input_names(model), inputs).items()}


def _by_name(names: Sequence[str], given: Inputs) -> dict[str, torch.Tensor]:
    if isinstance(given, Mapping) and set(given) == set(names):
        given = [given[name] for name in names]
    elif isinstance(given, Mapping) and set(given) & set(names):
        raise ValueError(f"the model takes inputs named {', '.join(names)}, not {', '.join(given)}")
    values = (
        [given] if isinstance(given, torch.Tensor) else [*(given.values() if isinstance(given, Mapping) else given)]
    )
    if len(values) != len(names):
        raise ValueError(f"the model takes {len(names)} inputs ({', '.join(names)}), not {len(values)}")
    return dict(zip(names, values, strict=True))


def _array(value: torch.Tensor) -> np.ndarray:
    value = value.float() if value.dtype == torch.bfloat16 else value
    return value.detach().cpu().numpy()


def onnx_output_to_torch(output: Sequence[np.ndarray]) -> list[torch.Tensor]:
    """The results of ONNX Runtime as tensors with memory of their own."""
    return [torch.from_numpy(np.asarray(value).copy()) for value in output]

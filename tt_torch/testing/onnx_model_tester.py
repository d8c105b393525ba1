"""A test of an ONNX model: it runs in ONNX Runtime and compiled, and the results are compared."""

from __future__ import annotations

from typing import Any

from tt_torch.config import CompilerConfig
from tt_torch.errors import NoCounterpartError
from tt_torch.onnx_compile import OnnxProgram, compile_onnx, onnx_output_to_torch, run_model_proto, shapes_of
from tt_torch.testing.model_tester import Inputs, Model, ModelTester, Outputs


class OnnxModelTester(ModelTester):
    """Like ModelTester, for an `onnx.ModelProto`, which `_load_model` returns.

    `_load_torch_inputs` returns the inputs: a tensor, or a sequence or mapping of tensors. Open dimensions of the model
    get the sizes of these. ONNX Runtime gives the
    golden results. Raises NoCounterpartError for the mode "train" and for `data_parallel_mode`.
    """

    def __init__(self, model_name: str, mode: str, *arguments: Any, **named: Any) -> None:
        if mode == "train":
            raise NoCounterpartError("OnnxModelTester with mode='train'", "ONNX models are run, not trained.")
        if named.get("data_parallel_mode"):
            raise NoCounterpartError("OnnxModelTester with data_parallel_mode", "Give each device a tester of its own.")
        super().__init__(model_name, mode, *arguments, **named)

    def _load_torch_inputs(self) -> Inputs:
        raise NotImplementedError("a subclass of OnnxModelTester has _load_torch_inputs")

    def _load_inputs(self) -> Inputs:
        return self._load_torch_inputs()

    def compile_model(self, model: Model, compiler_config: CompilerConfig) -> OnnxProgram:
        return compile_onnx(model, compiler_config, self.devices[0], shapes=shapes_of(model, self.inputs))

    def run_model(self, model: Model, inputs: Inputs) -> Outputs:
        """Calls the compiled program, or runs the model by ONNX Runtime."""
        if isinstance(model, OnnxProgram):
            return super().run_model(model, inputs)
        return onnx_output_to_torch(run_model_proto(model, inputs))

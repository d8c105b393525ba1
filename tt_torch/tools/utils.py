"""Names under the import path that users of tt-torch know; they are defined elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tt_torch.accuracy import calculate_atol, calculate_pcc
from tt_torch.bringup.records import OpCompilationStatus
from tt_torch.config import CompileDepth, CompilerConfig, OpByOpBackend
from tt_torch.lazy import lazy

if TYPE_CHECKING:
    from tt_torch.compat.utils import (
        RuntimeIntermediate,
        parse_shlo_mlir,
        tt_torch_error_message,
        with_torch_dynamo_cleanup,
    )
    from tt_torch.onnx_compile import (
        onnx_output_to_torch,
        prepare_inference_session,
        run_model_proto,
        torch_input_to_onnx,
    )

__all__ = [
    "CompileDepth",
    "CompilerConfig",
    "OpByOpBackend",
    "OpCompilationStatus",
    "RuntimeIntermediate",
    "calculate_atol",
    "calculate_pcc",
    "onnx_output_to_torch",
    "parse_shlo_mlir",
    "prepare_inference_session",
    "run_model_proto",
    "torch_input_to_onnx",
    "tt_torch_error_message",
    "with_torch_dynamo_cleanup",
]

# These are imported when they are first used, because they need the compiler.
_HOMES = {
    "RuntimeIntermediate": "compat.utils",
    "parse_shlo_mlir": "compat.utils",
    "tt_torch_error_message": "compat.utils",
    "with_torch_dynamo_cleanup": "compat.utils",
    "onnx_output_to_torch": "onnx_compile",
    "prepare_inference_session": "onnx_compile",
    "run_model_proto": "onnx_compile",
    "torch_input_to_onnx": "onnx_compile",
}
if not TYPE_CHECKING:  # otherwise a type checker would take every unknown name for an Any
    __getattr__ = lazy(__name__, _HOMES)

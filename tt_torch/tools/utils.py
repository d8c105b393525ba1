"""Names under the import path that users of tt-torch know; they are defined elsewhere."""

from tt_torch.accuracy import calculate_atol, calculate_pcc
from tt_torch.bringup.records import OpCompilationStatus
from tt_torch.config import CompileDepth, CompilerConfig, OpByOpBackend

__all__ = [
    "CompileDepth",
    "CompilerConfig",
    "OpByOpBackend",
    "OpCompilationStatus",
    "calculate_atol",
    "calculate_pcc",
]

"""The import path that tt-torch's users know; everything is defined in a better place."""

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

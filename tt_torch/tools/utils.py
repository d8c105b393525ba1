"""The import path that tt-torch's users know; everything is defined in a better place."""

from tt_torch.bringup.records import OpCompilationStatus
from tt_torch.config import CompileDepth, CompilerConfig, OpByOpBackend
from tt_torch.tools.verify import calculate_atol, calculate_pcc

__all__ = [
    "CompileDepth",
    "CompilerConfig",
    "OpByOpBackend",
    "OpCompilationStatus",
    "calculate_atol",
    "calculate_pcc",
]

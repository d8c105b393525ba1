"""tt_torch: a PyTorch 2 compiler front-end for Tenstorrent devices.

model = torch.compile(model, backend=tt_torch.backend)     # or backend="tt"
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tt_torch.lazy import lazy

if TYPE_CHECKING:
    from tt_torch.config import BackendOptions, CompileDepth, CompilerConfig
    from tt_torch.driver.aot import compile_model
    from tt_torch.driver.backend import backend
    from tt_torch.driver.compiled import CompiledFamily, CompiledModel
    from tt_torch.driver.explain import explain
    from tt_torch.driver.loading import load
    from tt_torch.driver.onnx import compile_onnx
    from tt_torch.driver.pending import to_host
    from tt_torch.driver.releasing import release
    from tt_torch.driver.report import compile_report
    from tt_torch.driver.stablehlo import compile_stablehlo
    from tt_torch.extending.registry import kernel, register_lowering
    from tt_torch.layers import dump_weight_names
    from tt_torch.runtime import refresh
    from tt_torch.sharding import mark_sharding, sharding_constraint
    from tt_torch.version import __version__ as __version__

__all__ = [
    "BackendOptions",
    "CompileDepth",
    "CompiledFamily",
    "CompiledModel",
    "CompilerConfig",
    "backend",
    "compile_model",
    "compile_onnx",
    "compile_report",
    "compile_stablehlo",
    "dump_weight_names",
    "explain",
    "kernel",
    "load",
    "mark_sharding",
    "refresh",
    "register_lowering",
    "release",
    "sharding_constraint",
    "to_host",
]

# Names are imported when they are first used: running a saved binary needs no compiler.
_HOMES = {
    "BackendOptions": "config",
    "CompileDepth": "config",
    "CompilerConfig": "config",
    "CompiledFamily": "driver.compiled",
    "CompiledModel": "driver.compiled",
    "compile_model": "driver.aot",
    "compile_onnx": "driver.onnx",
    "compile_report": "driver.report",
    "compile_stablehlo": "driver.stablehlo",
    "backend": "driver.backend",
    "explain": "driver.explain",
    "dump_weight_names": "layers",
    "kernel": "extending.registry",
    "register_lowering": "extending.registry",
    "load": "driver.loading",
    "mark_sharding": "sharding",
    "sharding_constraint": "sharding",
    "refresh": "runtime",
    "release": "driver.releasing",
    "to_host": "driver.pending",
    "__version__": "version",
}
if not TYPE_CHECKING:  # otherwise a type checker would take every unknown name for an Any
    __getattr__ = lazy(__name__, _HOMES)

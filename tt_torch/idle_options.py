"""Options that act only if another option has some value, and the warning about an option that is set without it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from tt_torch import user_code
from tt_torch.compiler_options import OP_BY_OP, CompileDepth, CompilerOptions
from tt_torch.option_kinds import variables

Config: TypeAlias = Any  # a CompilerConfig, whose module imports this one


class IdleOptionWarning(UserWarning):
    """An option is set but has no effect on a compilation, because another option lacks the value that it needs."""


@dataclasses.dataclass(frozen=True)
class Need:
    """Some options, and the condition under which they act, also in words.

    If `of_machine`, an environment variable may set them when the condition does not hold, because the variable
    describes the machine for all programs.
    """

    names: tuple[str, ...]
    holds: Callable[[Config], bool]
    words: str
    of_machine: bool = False


NEEDS = (
    Need(
        ("op_by_op_backend", "single_op_timeout", "jobs", "run_global_op_idx", "check_all_ops_execute"),
        lambda c: c.compile_depth in OP_BY_OP,
        "compile_depth COMPILE_OP_BY_OP or EXECUTE_OP_BY_OP",
    ),
    Need(
        ("verify_op_by_op",),
        lambda c: c.compile_depth == CompileDepth.EXECUTE_OP_BY_OP,
        "compile_depth EXECUTE_OP_BY_OP; enable_intermediate_verification compares the ops of a whole program",
    ),
    Need(
        ("enable_intermediate_verification", "bisect", "profile"),
        lambda c: c.compile_depth == CompileDepth.EXECUTE,
        "compile_depth EXECUTE",
    ),
    Need(
        ("required_pcc",),
        lambda c: c.enable_intermediate_verification or c.bisect or c.compile_depth in OP_BY_OP,
        "enable_intermediate_verification, bisect, or a compile_depth that is op by op",
    ),
    Need(
        ("results_path",),
        lambda c: c.enable_intermediate_verification or c.compile_depth in OP_BY_OP,
        "enable_intermediate_verification, or a compile_depth that is op by op",
    ),
    Need(("consteval_parameters",), lambda c: c.enable_consteval, "enable_consteval"),
    Need(
        ("enable_dram_sharded_matmul",),
        lambda c: c.level == 2 and c.enable_consteval and c.consteval_parameters,
        "optimization_level 2, enable_consteval and consteval_parameters",
    ),
    Need(("output_mlir_dir",), lambda c: bool(c.save_mlir), "save_mlir"),
    Need(("output_binary_dir",), lambda c: c.save_binary, "save_binary"),
    Need(("trace_region_size",), lambda c: c.enable_trace and c.device == "ttnn", 'enable_trace and device="ttnn"'),
    Need(("ttnn_python", "device_timeout"), lambda c: c.device == "ttnn", 'device="ttnn"', of_machine=True),
    Need(("pjrt_plugin", "tt_mlir_timeout"), lambda c: c.compiler == "tt-mlir", 'compiler="tt-mlir"', of_machine=True),
    Need(("cache_dir",), lambda c: c.cache_size > 0, "a cache_size above 0", of_machine=True),
)

# StableHLO and ONNX models come without a graph of PyTorch.
WITH_GRAPH = (
    Need(
        ("device_map", "buckets", "automatic_parallelization", "enable_intermediate_verification", "bisect", "profile"),
        lambda c: False,
        "a model of PyTorch",
    ),
)


def tell_idle(config: Config, of_pytorch: bool = True, environ: Mapping[str, str] = os.environ) -> None:
    """Warns, once per option and process, of each option that is set and has no effect on this compilation.

    `of_pytorch` says whether a model of PyTorch is compiled; otherwise it is a module without a PyTorch graph.
    """
    for name, text, need in _idle(config, NEEDS if of_pytorch else NEEDS + WITH_GRAPH, environ):
        message = f"{text} has no effect on this compilation: it needs {need.words}"
        user_code.warn_once(f"idle {name}", IdleOptionWarning(message))


def _idle(config: Config, needs: Iterable[Need], environ: Mapping[str, str]) -> Iterator[tuple[str, str, Need]]:
    """Yields each option that is set without effect, the text that sets it in the code or in a variable, and its
    need."""
    fields = {field.name: field for field in dataclasses.fields(CompilerOptions)}
    for need in needs:
        for name in () if need.holds(config) else need.names:
            value, given = getattr(config, name), [v for v in variables(fields[name]) if environ.get(v)]
            # A default that is True can be asked for, too. Other defaults ask for nothing.
            asked = value != fields[name].default or (value is True and (given or name in config.assigned))
            if asked and not (given and need.of_machine):
                yield name, f"{given[0]}={environ[given[0]]}" if given else f"{name}={value!r}", need

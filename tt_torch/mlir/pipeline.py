"""The pipeline from StableHLO to a binary: a flat list of named steps, to be read from top to bottom.

A compilation can stop after each step; each step can be dumped and timed. `tt-torch opt` runs any of
them on a file.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.errors import (
    ConfigError,
    EnvironmentMissingError,
    LoweringError,
    OverrideError,
    StageError,
    UnsupportedOpError,
)
from tt_torch.mlir import repro
from tt_torch.mlir.context import run_native
from tt_torch.mlir.stablehlo import lowering
from tt_torch.mlir.ttir import from_stablehlo
from tt_torch.mlir.ttir.passes import (
    canonicalize,
    fuse_activations,
    fuse_attention,
    fuse_collectives,
    fuse_convolution,
    fuse_heads,
    fuse_matmul,
    fuse_normalization,
    fuse_rotary,
    sink_data_movement,
)
from tt_torch.mlir.ttir.passes.apply_dtype import apply_dtype
from tt_torch.mlir.ttir.passes.expand_attention import expand_attention
from tt_torch.mlir.ttir.passes.expand_collectives import expand_collectives
from tt_torch.mlir.ttir.passes.fuse_distributed_norms import fuse_distributed_norms
from tt_torch.mlir.ttir.passes.update_states import update_states
from tt_torch.mlir.ttnn import from_ttir, legality
from tt_torch.mlir.ttnn.optimizer import op_model
from tt_torch.mlir.ttnn.optimizer.overriding import mark
from tt_torch.mlir.ttnn.optimizer.placement import optimize
from tt_torch.mlir.ttnn.passes.compute_config import set_compute_config
from tt_torch.mlir.ttnn.passes.const_eval import hoist_const_eval
from tt_torch.mlir.ttnn.passes.deallocate import deallocate
from tt_torch.mlir.ttnn.passes.distributed_norms import place_norms
from tt_torch.mlir.ttnn.passes.layouts import assign_layouts
from tt_torch.mlir.ttnn.passes.narrow_types import narrow_activations, narrow_caches
from tt_torch.mlir.ttnn.passes.prepare_convolutions import prepare_convolutions
from tt_torch.mlir.ttnn.passes.trace import record
from tt_torch.mlir.ttnn.passes.workarounds import apply_workarounds
from tt_torch.mlir.ttnn.precision import Precision
from tt_torch.mlir.verify import verify
from tt_torch.python_stack import with_room
from tt_torch.wire.binary import system

CLEAN = canonicalize.RULES + sink_data_movement.RULES
FUSE = CLEAN + fuse_matmul.RULES + fuse_convolution.RULES + fuse_normalization.RULES
FUSE += fuse_activations.RULES + fuse_rotary.RULES + fuse_heads.RULES + fuse_attention.RULES + fuse_collectives.RULES

T = TypeVar("T")
Step = tuple[str, Callable[[ir.Module, CompilerConfig], object]]


def _optimize(module: ir.Module, config: CompilerConfig) -> None:
    with op_model.chosen(config) as questions:
        chip = system(config.arch, config.system_desc)
        optimize(module, chip, config.level, questions, config.splits_weights)


TO_STABLEHLO: list[Step] = [
    ("stablehlo", lambda m, c: lowering.to_stablehlo(m)),
]
TO_TTIR: list[Step] = [
    ("stablehlo-to-ttir", lambda m, c: from_stablehlo.convert(m)),
    ("ttir-cse", lambda m, c: run_native(m, "canonicalize", "cse")),
    ("canonicalize", lambda m, c: CLEAN.simplify(m)),
    ("expand-attention", lambda m, c: expand_attention(m, c.dtype)),
    ("fuse", lambda m, c: FUSE.simplify(m)),
    ("update-states", lambda m, c: update_states(m)),
    ("apply-dtype", lambda m, c: apply_dtype(m, c.dtype)),
    ("turn-tiles", lambda m, c: fuse_rotary.BY_MATRIX.simplify(m)),
    ("ttir-cse-again", lambda m, c: run_native(m, "cse")),
]
TO_TTNN: list[Step] = [
    ("expand-collectives", lambda m, c: expand_collectives(m)),
    ("fuse-distributed-norms", lambda m, c: fuse_distributed_norms(m)),
    ("ttir-to-ttnn", lambda m, c: from_ttir.convert(m)),
    ("distributed-norms", lambda m, c: place_norms(m, system(c.arch, c.system_desc))),
    ("workarounds", lambda m, c: apply_workarounds(m)),
    ("prepare-convolutions", lambda m, c: prepare_convolutions(m, Precision(m, c))),
    ("layouts", lambda m, c: assign_layouts(m, Precision(m, c))),
    ("caches", lambda m, c: narrow_caches(m, c.kv_cache_dtype)),
    ("activations", lambda m, c: narrow_activations(m, Precision(m, c))),
    ("compute-config", lambda m, c: set_compute_config(m, Precision(m, c))),
    ("ttnn-cse", lambda m, c: run_native(m, "cse")),
    ("overrides", mark),
    ("optimize", _optimize),
    ("const-eval", lambda m, c: hoist_const_eval(m, c.consteval_parameters) if c.enable_consteval else None),
    ("legality", lambda m, c: legality.verify(m)),
    ("deallocate", lambda m, c: deallocate(m)),
    ("trace", lambda m, c: record(m) if c.writes_recordings else None),
]
# The level that a module is at after the last step of each list.
LEVELS = {"STABLEHLO": TO_STABLEHLO, "TTIR": TO_TTIR, "TTNN": TO_TTNN}
STEPS = dict(TO_STABLEHLO + TO_TTIR + TO_TTNN)


@dataclass
class Timings:
    """Seconds per step, in the order in which the steps ran."""

    steps: dict[str, float] = field(default_factory=dict)
    started: Callable[[str], object] = lambda name: None  # it is called with the name of each step that begins
    cached: bool = False  # whether the binary came from the compile cache

    def measure(self, name: str, run: Callable[[], T]) -> T:
        self.started(name)
        start = time.perf_counter()
        try:
            return run()
        finally:
            self.steps[name] = self.steps.get(name, 0.0) + time.perf_counter() - start


@with_room
def run_steps(module: ir.Module, steps: Iterable[Step], config: CompilerConfig, timings: Timings) -> None:
    """Runs steps in order and verifies the result.

    Raises UnsupportedOpError if the user's program is not supported. Errors of options that cannot be followed are
    raised, too. For any other error it raises StageError, and writes a folder from which the step can be repeated.
    """
    verified = b""  # the module at its last verification: many steps do not change a small program
    for name, step in steps:
        before = verified or repro.snapshot(module)
        try:
            timings.measure(name, lambda step=step: step(module, config))  # type: ignore[misc]
            if config.verify_ir and (after := repro.snapshot(module)) != verified:
                verify(module)
                verified = after
            if config.ir_log_level == "DEBUG":
                print(f"// --- after {name} ---\n{module}", file=sys.stderr)
        except (UnsupportedOpError, LoweringError, OverrideError, ConfigError, EnvironmentMissingError):
            raise
        except Exception as error:
            raise StageError(name, error, repro.write(config, name, before, error)) from error
    timings.measure("verify", lambda: verify(module))

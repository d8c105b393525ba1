"""The folder of a failing step: the IR before the step, its name, and the command that repeats it."""

from __future__ import annotations

import dataclasses
import io
import json
from datetime import datetime
from pathlib import Path
from shlex import quote

from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.option_kinds import Setting


def snapshot(module: ir.Module) -> bytes:
    """The module as bytecode, which is faster to write than text."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


# The options that steps read. An option that differs from its default becomes an environment variable of the command.
OPTIONS = (
    "dtype", "weight_dtype", "activation_dtype", "kv_cache_dtype", "arch", "system_desc", "enable_consteval",
    "consteval_parameters", "enable_optimizer", "optimization_level", "math_fidelity", "fp32_dest_acc_en", "precision",
    "enable_trace", "optimizer_overrides", "enable_dram_sharded_matmul",
)  # fmt: skip


def folder(config: CompilerConfig, step: str) -> Path:
    """Makes a new folder for a step in `repro_dir`."""
    path = Path(config.repro_dir).resolve() / f"{datetime.now():%Y%m%d_%H%M%S_%f}_{step}"
    path.mkdir(parents=True)
    return path


def write(config: CompilerConfig, step: str, before: bytes, error: Exception) -> str:
    """Writes the folder and returns the command that repeats the step."""
    path = folder(config, step)
    (path / "before.mlirbc").write_bytes(before)
    (path / "error.txt").write_text(f"{type(error).__name__}: {error}\n")
    command = f"{_settings(config)}tt-torch opt {quote(str(path / 'before.mlirbc'))} --step {step}"
    (path / "command.txt").write_text(command + "\n")
    return command


def _settings(config: CompilerConfig) -> str:
    fields = (f for f in dataclasses.fields(config) if f.name in OPTIONS)
    changed = [(f, getattr(config, f.name)) for f in fields if getattr(config, f.name) != f.default]
    return "".join(f"{f.metadata['env']}={quote(_text(v))} " for f, v in changed)


def _text(value: Setting) -> str:
    """The value of an option as an environment variable has it."""
    if isinstance(value, tuple):  # by patterns
        return json.dumps({pattern: dict(entry) for pattern, entry in value})
    return str(int(value) if isinstance(value, bool) else value)

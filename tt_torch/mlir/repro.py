"""What a failing step leaves behind: the IR before it, its name, the command that repeats it."""

from __future__ import annotations

import io
from datetime import datetime
from pathlib import Path

from torch_mlir import ir


def snapshot(module: ir.Module) -> bytes:
    """The module as bytecode, which is quick to write; it becomes text only when it is needed."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def write(folder: str, step: str, before: bytes, error: Exception) -> str:
    """Writes the folder and returns the command that repeats the step."""
    path = Path(folder) / f"{datetime.now():%Y%m%d_%H%M%S_%f}_{step}"
    path.mkdir(parents=True)
    (path / "before.mlirbc").write_bytes(before)
    (path / "error.txt").write_text(f"{type(error).__name__}: {error}\n")
    command = f"python -m tt_torch.tools.opt --step {step} {path / 'before.mlirbc'}"
    (path / "command.txt").write_text(command + "\n")
    return command

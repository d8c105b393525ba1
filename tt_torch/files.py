"""Writing files."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: str | Path, data: bytes) -> None:
    """Writes a file completely or not at all: under a temporary name, which is then renamed."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)

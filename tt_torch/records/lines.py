"""Records as JSON lines: one object a line, appended as items end, so that a killed sweep can go on."""

from __future__ import annotations

import functools
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any


class Results:
    """A results file. Of several records with one key, the last counts."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, record: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            if file.tell() and not _ends_line(file):
                file.write(b"\n")  # a killed sweep's last line stays by itself, and is skipped by readers
            file.write(json.dumps(record).encode() + b"\n")

    def done(self) -> set[str]:
        """Keys that this commit has results of."""
        now = provenance()["commit"]
        return {record["key"] for record in read(self.path) if record["commit"] == now}


def _ends_line(file: Any) -> bool:
    file.seek(-1, 2)
    return file.read(1) == b"\n"


def read(path: Path) -> list[dict[str, Any]]:
    """The records of a file, the last one of each key, in order. A line cut off by a kill is left out."""
    return list({record["key"]: record for record in lines(path)}.values())


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """All records of a file."""
    if not path.exists():
        return
    for line in path.read_bytes().splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue


@functools.cache
def provenance() -> dict[str, Any]:
    """What a result depends on: commit (None outside a checkout; local changes add their hash) and versions."""
    packages = ("tt-torch", "torch", "torch-mlir")
    versions = {"python": sys.version.split()[0], **{name: version(name) for name in packages}}
    return {"commit": _commit(), "versions": versions}


def _commit() -> str | None:
    try:
        commit = _git("describe", "--always", "--dirty", "--exclude=*").decode().strip()
        changes = _git("diff", "HEAD") if commit.endswith("-dirty") else b""
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{commit}-{hashlib.sha256(changes).hexdigest()[:8]}" if changes else commit


def _git(*arguments: str) -> bytes:
    root = Path(__file__).parents[2]
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=True).stdout


def stamp() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

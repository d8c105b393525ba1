"""Records as JSON lines: one object per line, appended when an item ends, so that a killed sweep can continue."""

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
from typing import Any, BinaryIO, TypeAlias

Record: TypeAlias = dict[str, Any]  # what is known of an item, in the types of JSON; each kind of item has its fields


class Results:
    """A results file. If several records have the same key, the last one counts."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, record: Record) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            if file.tell() and not _ends_line(file):
                file.write(b"\n")  # the incomplete last line of a killed sweep keeps its own line, which readers skip
            file.write(json.dumps(record).encode() + b"\n")

    def done(self) -> set[str]:
        """The keys of the records that this commit wrote."""
        now = provenance()["commit"]
        return {record["key"] for record in read(self.path) if record["commit"] == now}


def _ends_line(file: BinaryIO) -> bool:
    file.seek(-1, 2)
    return file.read(1) == b"\n"


def read(path: Path) -> list[Record]:
    """The records of a file in order, only the last one of each key. An incomplete line is skipped."""
    return list({record["key"]: record for record in lines(path)}.values())


def lines(path: Path) -> Iterator[Record]:
    """All records of a file."""
    if not path.exists():
        return
    for line in path.read_bytes().splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue


@functools.cache
def provenance() -> Record:
    """The commit and the package versions. The commit is None outside of a checkout; local changes add a hash."""
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

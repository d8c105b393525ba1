"""Records as JSON lines: one object per line, appended when an item ends, so that a killed sweep can continue."""

from __future__ import annotations

import functools
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from tt_torch.errors import ResultsFileError

Record: TypeAlias = dict[str, Any]  # what is known of an item, in the types of JSON; each kind of item has its fields

_MOST_DEPTH = 32  # of lists and objects inside one another
_DEEP = "its lists and objects are nested too deeply"


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

    def done(self, origin: Record) -> set[str]:
        """The keys of the records that have all fields of `origin`: the same commit, versions and models."""
        return {record["key"] for record in read(self.path) if origin.items() <= record.items()}


def _ends_line(file: BinaryIO) -> bool:
    file.seek(-1, 2)
    return file.read(1) == b"\n"


def read(path: Path) -> list[Record]:
    """The records of a file in order, only the last one of each key. An incomplete line is skipped."""
    return list({record["key"]: record for record in lines(path)}.values())


def lines(path: Path) -> Iterator[Record]:
    """All records of a file. Raises ResultsFileError for a line of JSON that is no record."""
    if not path.exists():
        return
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            record = parse(line)
        except ValueError:
            continue
        except RecursionError as error:
            raise ResultsFileError(str(path), f"line {number}: {error}") from None
        if not isinstance(record, dict) or not isinstance(record.get("key"), str):
            raise ResultsFileError(str(path), f"line {number} is no object with a key that is a text")
        yield record


def parse(text: str | bytes) -> Any:
    """The value of JSON text. Raises ValueError if it is no JSON, and RecursionError if it is nested too deeply."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise RecursionError(_DEEP) from None
    level = [value]
    for _ in range(_MOST_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
    if level:
        raise RecursionError(_DEEP)
    return value


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def shortened(text: str, most: int = 160) -> str:
    """The text, or its first `most` characters and an ellipsis, so that one sees that it goes on."""
    return text if len(text) <= most else f"{text[:most]}…"


@functools.cache
def provenance() -> Record:
    """The commit and the package versions."""
    packages = ("tt-torch", "torch", "torch-mlir")
    versions = {"python": sys.version.split()[0], **{name: version(name) for name in packages}}
    return {"commit": commit(), "versions": versions}


def commit() -> str | None:
    """The commit of the checkout. It is None outside of a checkout; local changes add a hash."""
    try:
        found = _git("describe", "--always", "--dirty", "--exclude=*").decode().strip()
        changes = _git("diff", "HEAD") if found.endswith("-dirty") else b""
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{found}-{hashlib.sha256(changes).hexdigest()[:8]}" if changes else found


def _git(*arguments: str) -> bytes:
    root = Path(__file__).parents[2]
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=True).stdout


def stamp() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")

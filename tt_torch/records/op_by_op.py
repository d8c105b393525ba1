"""The file of an op-by-op run: one record per unique op, as JSON with a version and a schema.

`op_by_op.schema.json` says what each field means. The file is always replaced as a whole, so it is readable at any
time.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from tt_torch.errors import ConfigError
from tt_torch.files import write, write_new
from tt_torch.records.lines import Record, provenance, stamp

VERSION = 2
SCHEMA = Path(__file__).with_name("op_by_op.schema.json")
EXECUTED = 7  # the compilation status of an op that ran
LONGEST_TEXT = 32_667  # characters of a module or traceback that are kept; a cell of a workbook takes 100 more
Config: TypeAlias = Any  # a CompilerConfig, whose module imports this one


class OpsFile:
    """The file of a model. Raises ConfigError if it has the results of a model with another name."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._path = Path(config.results_path) / f"{config.file_stem}_unique_ops.json" if config.model_name else None
        if self._path and self._path.exists():
            _require_same_model(self._path, config.model_name)
        self.origin = {**provenance(), "time": stamp()}

    def save(self, ops: Mapping[str, Record], error: str = "") -> Path:
        """Writes the file and returns its name. Without a `model_name`, no file of another process is replaced.

        `error` says why a graph could not be taken apart.
        """
        document = {
            "version": VERSION,
            "model_name": self.config.model_name,
            "error": error,
            **self.origin,
            "config": self.config.to_dict(),
            "ops": ops,
        }
        content = json.dumps(document, indent=1, allow_nan=False, default=str).encode()
        if self._path is None:
            self._path = write_new(numbered(self.config, "unique_ops.json"), content)
        else:
            write(self._path, content)
        return self._path


def told(ops: Mapping[str, Record], path: Path) -> str:
    """How many of the ops ran, in one line with the name of their file. At the depth COMPILE_OP_BY_OP, none runs: then
    it says how many were compiled."""
    executed = sum(record["compilation_status"] == EXECUTED for record in ops.values())
    compiled = sum(record["verdict"] == "compiled" for record in ops.values())
    done = f"{compiled}/{len(ops)} ops compiled" if compiled and not executed else f"{executed}/{len(ops)} ops executed"
    return f"{done}: {path}"


def not_executed(records: Iterable[Record]) -> list[str]:
    """The ops that did not run, each with its verdict."""
    left = (record for record in records if record["compilation_status"] != EXECUTED)
    return [f"{record['framework_op_name']}: {record['verdict']}" for record in left]


def numbered(config: Config, ending: str) -> Iterator[Path]:
    """Names for a file of a model without a name: `model_<ending>`, `model_2_<ending>`, and so on without an end."""
    numbers = ("" if number == 1 else f"{number}_" for number in itertools.count(1))
    return (Path(config.results_path) / f"{config.file_stem}_{number}{ending}" for number in numbers)


def _require_same_model(path: Path, name: str) -> None:
    """Raises ConfigError if a file has the results of another model. Names such as a/b and a_b have the same file."""
    try:
        other = json.loads(path.read_bytes())["model_name"]
    except (ValueError, KeyError, TypeError):  # these are no results
        return
    if other != name:
        raise ConfigError("model_name", name, f"another name, because {path} has the results of the model {other!r}")

"""Records from files: JSON lines of sweeps, JSON of op-by-op runs, and JUnit XML of test runs."""

from __future__ import annotations

import json
from ast import literal_eval
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeGuard
from xml.etree import ElementTree

from tt_torch.errors import ResultsFileError
from tt_torch.records.lines import Record, lines, parse
from tt_torch.reports.form import oddity
from tt_torch.reports.unique_ops import unique_ops

_OUTCOMES = {"failure": "wrong", "error": "error", "skipped": "skipped"}


def read(path: Path) -> list[Record]:
    """All records of a file. Raises ResultsFileError if the file has none of these formats."""
    try:
        records = _read(path)
    except (ElementTree.ParseError, UnicodeDecodeError, RecursionError) as error:
        raise ResultsFileError(str(path), str(error)) from error
    if not records and path.stat().st_size and path.suffix not in (".xml", ".json"):
        raise ResultsFileError(str(path), "no line of it is JSON")
    for number, record in enumerate(records, 1):
        if odd := oddity(record):
            raise ResultsFileError(str(path), f"record {number}: {odd}")
    return records


def _read(path: Path) -> list[Record]:
    if path.suffix == ".xml":
        return list(_junit(ElementTree.parse(path).getroot()))
    return _op_by_op(path) if path.suffix == ".json" else list(lines(path))


def _op_by_op(path: Path) -> list[Record]:
    try:
        return list(unique_ops(parse(path.read_bytes())))
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError) as error:
        raise ResultsFileError(str(path), "it does not have the form of an op-by-op run's file") from error


def _junit(root: ElementTree.Element) -> Iterator[Record]:
    for suite in root.iter("testsuite"):
        shared = _properties(suite)
        for case in suite.iterfind("testcase"):
            properties = shared | _properties(case)
            outcome = next((child for child in case if child.tag in _OUTCOMES), None)
            record = {
                "kind": "test",
                "key": f"{case.get('classname', '')}::{case.get('name', '')}",
                "verdict": "match" if outcome is None else _OUTCOMES[outcome.tag],
                "seconds": _seconds(case.get("time", "0")),
                "time": suite.get("timestamp"),
                "commit": properties.pop("commit", None),
                "properties": properties,
            }
            if outcome is not None:
                record |= {"error": outcome.get("type") or outcome.tag, "message": outcome.get("message", "")}
            yield record
            yield from _model(record)


def _model(test: Record) -> Iterator[Record]:
    """The record of the model that a ModelTester has tested as a whole, with the outcome of its test."""
    properties = test["properties"]
    tags, config = properties.get("tags"), properties.get("config")
    depth = config["compiler_config"].get("compile_depth") if _has_options(config) else "EXECUTE"
    if not isinstance(tags, dict) or "bringup_status" not in tags or depth != "EXECUTE":
        return
    name = str(tags.get("model_name", test["key"]))
    known = {field: tags[field] for field in ("pcc", "atol") if tags.get(field, -1) != -1}
    fields = ("verdict", "seconds", "time", "commit", "error", "message")
    shared: Record = {field: test[field] for field in fields if field in test}
    shared |= {"group": properties.get("group"), "depth": properties.get("achieved_compile_depth", "FAILED_FE")}
    yield {"kind": "model", "key": name, "model": name, **shared, **known}


def _has_options(config: object) -> TypeGuard[dict[str, Record]]:
    return isinstance(config, dict) and isinstance(config.get("compiler_config"), dict)


def _properties(element: ElementTree.Element) -> Record:
    found = {p.get("name", ""): p.get("value", "") for p in element.iterfind("properties/property")}
    return {name: _value(text) for name, text in found.items()}


def _seconds(text: str) -> float | str:
    """The number in a duration. Some writers put commas between thousands. Any other text is returned as it is."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return text


def _value(text: str) -> object:
    """The value of a property. A list or dictionary is parsed; it is JSON or, as pytest writes it, Python."""
    if not text.startswith(("{", "[")):
        return text
    for read_as in (parse, lambda text: parse(json.dumps(literal_eval(text)))):
        with suppress(ValueError, SyntaxError, TypeError, MemoryError):
            return read_as(text)
    return text

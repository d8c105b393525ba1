"""The records as a workbook: models, all ops, the ops that are not right or not on the device, a sheet per model."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from openpyxl import Workbook
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
from openpyxl.styles import Font, PatternFill
from openpyxl.utils import get_column_letter

from tt_torch.reports.compare import state

Record = dict[str, Any]

_MODEL_COLUMNS = "Model|Package|Status|PCC|ATOL|Device ops|Host ops|Seconds|Binary bytes|Commit".split("|")
_OP_COLUMNS = "Op|Data type|Samples|Right|Nothing on the host|Status".split("|")
_PROBLEM_COLUMNS = "Sample|Status|Error|Message|Host ops|Commit".split("|")
_OPS_OF_COLUMNS = "Op|Runs on|Count|Reason|Location".split("|")

_FINE = ("match", "eager-raises-same")
_COLORS = {"match": "C6EFCE", "eager-raises-same": "C6EFCE", "on host": "FFEB9C", "skipped": "EDEDED"}
_RED = "FFC7CE"
_SHEET_NAME = 28  # characters; Excel takes 31, a number may follow
_WIDEST = 60
_CELL = 32_767  # characters that Excel takes


def write_workbook(records: Sequence[Record], path: Path) -> None:
    """Writes the workbook whole or not at all."""
    models = [record for record in records if record["kind"] == "model"]
    ops = [record for record in records if record["kind"] == "op"]
    book = Workbook()
    book.remove(book.active)
    _sheet(book, "Per Model Status", _MODEL_COLUMNS, map(_model, models))
    _sheet(book, "All Ops", _OP_COLUMNS, _all_ops(ops))
    problems = [op for op in ops if state(op) not in _FINE]
    _sheet(book, "All Ops (Not Executing)", _PROBLEM_COLUMNS, map(_problem, problems))
    names: set[str] = {sheet.title for sheet in book}
    for model in models:
        _sheet(book, _name(model["model"], names), _OPS_OF_COLUMNS, _ops_of(model))
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        book.save(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _model(record: Record) -> Sequence[Any]:
    figures = (record.get("pcc"), record.get("atol"), sum(record.get("device_ops", {}).values()))
    host = ", ".join(op["op"] for op in record.get("host_ops", ()))
    costs = (record.get("seconds"), record.get("binary_bytes"), record.get("commit"))
    return (record["model"], record.get("group"), state(record), *figures, host, *costs)


def _all_ops(records: Iterable[Record]) -> Iterable[Sequence[Any]]:
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for record in records:
        groups[record["key"].split("/")[0], record["dtype"]].append(state(record))
    for (op, dtype), states in sorted(groups.items()):
        right = sum(each in (*_FINE, "on host") for each in states)
        worst = min(states, key=lambda each: (each in _FINE, each == "on host"))
        yield op, dtype, len(states), right, states.count("match"), worst


def _problem(record: Record) -> Sequence[Any]:
    host = "; ".join(f"{op['op']}: {op['reason']}" for op in record.get("host_ops", ()))
    return record["key"], state(record), record.get("error"), record.get("message"), host, record.get("commit")


def _ops_of(model: Record) -> Iterable[Sequence[Any]]:
    for op, count in model.get("device_ops", {}).items():
        yield op, "device", count, "", ""
    for host in model.get("host_ops", ()):
        yield host["op"], "host", host["count"], host["reason"], host.get("location", "")


def _name(model: str, taken: set[str]) -> str:
    base = re.sub(r"[\\/*?:\[\]]", "_", model)[:_SHEET_NAME]
    names = (base, *(f"{base}_{i}" for i in range(1, 100)))
    name = next(name for name in names if name.lower() not in {other.lower() for other in taken})
    taken.add(name)
    return name


def _sheet(book: Workbook, title: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    sheet = book.create_sheet(title)
    sheet.append(list(head))
    for row in rows:
        sheet.append([_cell(value) for value in row])
    for cell in sheet[1]:
        cell.font = Font(bold=True)
    sheet.freeze_panes = "A2"
    sheet.auto_filter.ref = sheet.dimensions
    for i, column in enumerate(sheet.columns, 1):
        widest = max(len(str(cell.value or "")) for cell in column)
        sheet.column_dimensions[get_column_letter(i)].width = min(_WIDEST, widest + 2)
    if "Status" in head:
        _colour(sheet, head.index("Status"))


def _colour(sheet: Any, column: int) -> None:
    for row in sheet.iter_rows(min_row=2):
        row[column].fill = PatternFill("solid", start_color=_COLORS.get(row[column].value, _RED))


def _cell(value: Any) -> Any:
    """Text that Excel takes; and that it does not take for a formula."""
    if not isinstance(value, str):
        return value
    text = ILLEGAL_CHARACTERS_RE.sub("", value)[:_CELL]
    return f"'{text}" if text.startswith("=") else text

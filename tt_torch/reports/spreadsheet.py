"""The records as a workbook: models, their unique ops, OpInfo samples, failures, and a sheet per model."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from openpyxl import Workbook
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
from openpyxl.styles import Font, PatternFill
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.worksheet import Worksheet

from tt_torch.files import write_by
from tt_torch.records.lines import Record
from tt_torch.reports import workbook_rows
from tt_torch.reports.compare import state
from tt_torch.reports.workbook_rows import Cell, Cells

_MODEL_COLUMNS = "Model|Package|Status|Depth|PCC|ATOL|Device ops|Host ops|Seconds|Binary bytes|Commit".split("|")
_OP_COLUMNS = "Op|Data type|Samples|Right|Nothing on the host|Status".split("|")
_PROBLEM_COLUMNS = "Sample|Status|Error|Message|Host ops|Commit".split("|")
_OPS_OF_COLUMNS = "Op|Runs on|Count|Reason|Location".split("|")

_FINE = ("match", "eager-raises-same")
_COLORS = {"match": "C6EFCE", "eager-raises-same": "C6EFCE", "on host": "FFEB9C", "skipped": "EDEDED"}
_RED = "FFC7CE"
_GRADES = ((100, "C6EFCE"), (80, "FFEB9C"), (50, "F8CBAD"))
_SHEET_NAME = 28  # characters; Excel allows 31, and a number may follow
_WIDEST = 60
_CELL = 32_767  # characters that Excel allows


def write_workbook(records: Sequence[Record], path: Path) -> None:
    """Writes the workbook completely or not at all."""
    by_kind: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_kind[record["kind"]].append(record)
    models, samples, unique = by_kind["model"], by_kind["op"], by_kind["unique-op"]
    book = Workbook()
    book.remove(book.active)
    _sheet(book, "Per Model Status", _MODEL_COLUMNS, map(_model, models))
    _sheet(book, "Per Model Compile Statuses", workbook_rows.STATUS_COLUMNS, workbook_rows.statuses(unique))
    _sheet(book, "All Ops", workbook_rows.ALL_COLUMNS, workbook_rows.all_ops(unique))
    failing = [op for op in unique if state(op) not in _FINE]
    _sheet(book, "All Ops (Not Executing)", workbook_rows.ALL_COLUMNS, workbook_rows.all_ops(failing))
    _sheet(book, "OpInfo", _OP_COLUMNS, _samples(samples))
    problems = [op for op in samples if state(op) not in _FINE]
    _sheet(book, "OpInfo (Not Executing)", _PROBLEM_COLUMNS, map(_problem, problems))
    _model_sheets(book, models, unique)
    write_by(path, book.save)


def _model_sheets(book: Workbook, models: Iterable[Record], unique: Iterable[Record]) -> None:
    """A sheet per model: its unique ops if there was an op-by-op run, otherwise which ops run where."""
    names: set[str] = {sheet.title for sheet in book}
    ops: dict[str, list[Record]] = defaultdict(list)
    for op in sorted(unique, key=lambda op: op.get("global_op_idx", 0)):
        ops[op["model"]].append(op)
    whole = {record["model"]: record for record in models}
    for model in dict.fromkeys([*whole, *ops]):
        if model in ops:
            _sheet(book, _name(model, names), workbook_rows.MODEL_COLUMNS, map(workbook_rows.of_model, ops[model]))
        else:
            _sheet(book, _name(model, names), _OPS_OF_COLUMNS, _ops_of(whole[model]))


def _model(record: Record) -> Cells:
    ops = sum(record["device_ops"].values()) if "device_ops" in record else None  # a test does not record them
    figures = (record.get("pcc"), record.get("atol"), ops)
    host = ", ".join(op["op"] for op in record.get("host_ops", ()))
    costs = (record.get("seconds"), record.get("binary_bytes"), record.get("commit"))
    return (record["model"], record.get("group"), state(record), record.get("depth"), *figures, host, *costs)


def _samples(records: Iterable[Record]) -> Iterable[Cells]:
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for record in records:
        groups[record["key"].split("/")[0], record["dtype"]].append(state(record))
    for (op, dtype), states in sorted(groups.items()):
        right = sum(each in (*_FINE, "on host") for each in states)
        worst = min(states, key=lambda each: (each in _FINE, each == "on host"))
        yield op, dtype, len(states), right, states.count("match"), worst


def _problem(record: Record) -> Cells:
    host = "; ".join(f"{op['op']}: {op['reason']}" for op in record.get("host_ops", ()))
    return record["key"], state(record), record.get("error"), record.get("message"), host, record.get("commit")


def _ops_of(model: Record) -> Iterable[Cells]:
    host: Counter[str] = Counter()
    for each in model.get("host_ops", ()):
        host[each["op"]] += each["count"]
    for op, count in model.get("aten_ops", {}).items():
        if count > host[op]:
            yield op, "device", count - host[op], "", ""
    for op, count in model.get("device_ops", {}).items():
        yield op, "device op", count, "", ""
    for each in model.get("host_ops", ()):
        yield each["op"], "host", each["count"], each["reason"], each.get("location", "")


def _name(model: str, taken: set[str]) -> str:
    base = re.sub(r"[\\/*?:\[\]]", "_", model)[:_SHEET_NAME]
    names = (base, *(f"{base}_{i}" for i in range(1, 100)))
    name = next(name for name in names if name.lower() not in {other.lower() for other in taken})
    taken.add(name)
    return name


def _sheet(book: Workbook, title: str, head: Sequence[str], rows: Iterable[Cells]) -> None:
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
    if "% Executed" in head:
        _grade(sheet, head.index("% Executed"))


def _colour(sheet: Worksheet, column: int) -> None:
    for row in sheet.iter_rows(min_row=2):
        row[column].fill = PatternFill("solid", start_color=_COLORS.get(row[column].value, _RED))


def _grade(sheet: Worksheet, column: int) -> None:
    """Green for 100 %, yellow from 80 %, orange from 50 %, red below."""
    for row in sheet.iter_rows(min_row=2):
        share = row[column].value
        color = next((color for least, color in _GRADES if share >= least), _RED)
        row[column].fill = PatternFill("solid", start_color=color)


def _cell(value: Cell) -> Cell:
    """Text that Excel accepts, and does not read as a formula."""
    if not isinstance(value, str):
        return value
    text = ILLEGAL_CHARACTERS_RE.sub("", value)[:_CELL]
    return f"'{text}" if text.startswith("=") else text

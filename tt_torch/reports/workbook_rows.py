"""Rows of the workbook about unique ops: how far each came, per model and over all models."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from tt_torch.bringup.records import OpCompilationStatus
from tt_torch.records.lines import Record
from tt_torch.reports.compare import state
from tt_torch.reports.unique_ops import by_form, models_of

Cell: TypeAlias = str | int | float | None
Cells: TypeAlias = Sequence[Cell]  # a row of a sheet

STATUS_COLUMNS = (
    *"Model|Group|Backend".split("|"),
    *(f"{int(status)} {status.name.lower().replace('_', ' ')}" for status in OpCompilationStatus),
    *"Total|% Compiled to TTNN|% Executed|Not Right|Timeouts|Commit|Time".split("|"),
)
_SHARED = (
    "NumOps|Status|Reached|PCC|ATOL|Ops|Torch IR|Raw SHLO|Raw TTIR|Raw TTNNIR|Compile Error|Trace dump|Compiled Json"
)
MODEL_COLUMNS = f"Name|Input Shapes|Output Shapes|Backend|Global Op Idx|{_SHARED}".split("|")
ALL_COLUMNS = f"Name|Input Shapes|Output Shapes|Backend|Models|{_SHARED}".split("|")


def statuses(ops: Iterable[Record]) -> Iterable[Cells]:
    """A row per model: the number of its unique ops at each status."""
    by_model: dict[str, list[Record]] = defaultdict(list)
    for op in ops:
        by_model[op["model"]].append(op)
    for model, its in by_model.items():
        reached = Counter(op.get("compilation_status", 0) for op in its)
        compiled = reached[OpCompilationStatus.CONVERTED_TO_TTNN] + reached[OpCompilationStatus.EXECUTED]
        shares = (round(100 * n / len(its), 1) for n in (compiled, reached[OpCompilationStatus.EXECUTED]))
        bad = (sum(state(op) != "match" for op in its), sum(op["verdict"] == "timeout" for op in its))
        first = its[0]
        labels = (model, first.get("model_group"), first.get("backend"))
        counts = (reached[status] for status in OpCompilationStatus)
        yield (*labels, *counts, len(its), *shares, *bad, first.get("commit"), first.get("time"))


def of_model(op: Record) -> Cells:
    return _row(op, op.get("global_op_idx"), op.get("num_ops"))


def all_ops(ops: Iterable[Record]) -> Iterable[Cells]:
    """A row per op with its form, its outcome and the models that have it."""
    for its in by_form(ops):
        models = models_of(its)
        yield _row(its[0], f"{len(models)}: {', '.join(models)}", sum(op.get("num_ops", 1) for op in its))


def _row(op: Record, fifth: Cell, count: Cell) -> Cells:
    shapes = (", ".join(op.get(f"{side}_shapes", ())) for side in ("input", "output"))
    measures = (op.get("compilation_status"), op.get("pcc"), op.get("atol"), ", ".join(op.get("stable_hlo_ops", ())))
    texts = (op.get(f"{level}_graph") for level in ("torch_ir", "stable_hlo", "ttir", "ttnn"))
    error = op.get("message") or op.get("error")
    labels = (op["framework_op_name"], *shapes, op.get("backend"), fifth, count)
    return (*labels, state(op), *measures, *texts, error, op.get("runtime_stack_dump"), op.get("compiled_json"))

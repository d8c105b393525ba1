"""The unique ops of models as records, from the files of op-by-op runs."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator

from tt_torch.records.lines import Record
from tt_torch.records.op_by_op import LONGEST_TEXT

# Differences up to this count as rounding. The correlation says nothing there: it is not defined for zeros.
_ROUNDING = 1e-6
_VERDICTS = {"executed": "match", "compiled": "match", "crash": "crash", "timeout": "timeout"}
_TEXTS = ("torch_ir_graph", "stable_hlo_graph", "ttir_graph", "ttnn_graph", "runtime_stack_dump", "compiled_json")


def unique_ops(document: Record) -> Iterator[Record]:
    """A record per op of an op-by-op file, with the fields of its schema and the fields of all records.

    `verdict` has the words of sweeps, and `outcome` the words of the file. An op whose correlation is too low is wrong.
    """
    model = document["model_name"] or "model"
    origin = {name: document.get(name) for name in ("commit", "versions", "time")}
    shared = {"kind": "unique-op", "model": model, **origin}
    if document["error"]:
        problem = {"verdict": "error", "outcome": "error", "error": "CompileError", "message": document["error"]}
        yield {**shared, "key": f"{model}: the whole graph", "framework_op_name": "", **problem}
    for form, op in document["ops"].items():
        seconds = sum(op[f"{what}_seconds"] or 0.0 for what in ("compile", "execute"))
        record = {**op, **shared, "key": f"{model}: {form}", "outcome": op["verdict"], "seconds": round(seconds, 4)}
        record |= {name: _number(op[name]) for name in ("pcc", "atol", "rtol", "ulp")}
        record |= {name: _text(op[name]) for name in _TEXTS}
        yield record | _verdict(op, document["config"]["required_pcc"])


def by_form(records: Iterable[Record]) -> list[list[Record]]:
    """Records of unique ops in groups: the same op in several models, with the same outcome."""
    same: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        same[form_of(record), record["outcome"]].append(record)
    return list(same.values())


def form_of(record: Record) -> str:
    """The op with its arguments, without the model."""
    return str(record["key"]).removeprefix(f"{record['model']}: ")


def models_of(records: Iterable[Record]) -> list[str]:
    return list(dict.fromkeys(record["model"] for record in records))


def _verdict(op: Record, required_pcc: float) -> Record:
    if op["pcc"] is not None and not float(op["pcc"]) >= required_pcc and not float(op["atol"]) <= _ROUNDING:
        return {"verdict": "wrong", "error": "Mismatch", "message": f"PCC {op['pcc']}, required {required_pcc}"}
    return {"verdict": _VERDICTS.get(op["verdict"], "error")}


def _number(value: float | str | None) -> float | None:
    """The number, or None for NaN and infinities, which are text in the file and which not all databases take."""
    return None if value is None or not math.isfinite(float(value)) else float(value)


def _text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text[:LONGEST_TEXT]

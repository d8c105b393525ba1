"""A Markdown page per ATen op, with the results of its forms in models and of its OpInfo samples."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from tt_torch.records.lines import Record
from tt_torch.records.markdown import brief, table
from tt_torch.records.summary import notes
from tt_torch.reports.compare import state
from tt_torch.reports.unique_ops import by_form, form_of, models_of

_LONGEST_NAME = 100  # characters of a file's name


def op_pages(records: Iterable[Record]) -> dict[str, str]:
    """The pages by file name; `README.md` lists them.

    Forms in models and OpInfo samples are on one page if the name of the op is the same: aten.add.Tensor and add.
    """
    forms: dict[str, list[Record]] = defaultdict(list)
    samples: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record["kind"] == "unique-op" and record["framework_op_name"]:
            forms[_name(record["framework_op_name"])].append(record)
        elif record["kind"] == "op":
            samples[record["key"].split("/")[0]].append(record)
    files = _file_names({*forms, *samples})
    pages = {file: _page(name, forms[name], samples[name]) for name, file in files.items()}
    rows = [(f"[{brief(name)}]({file})", _count(forms[name]), _count(samples[name])) for name, file in files.items()]
    head = ("op", "forms in models that are right", "OpInfo samples that are right")
    return {"README.md": "\n".join(["# Ops", "", *table(head, rows), ""]), **pages}


def _file_names(ops: Iterable[str]) -> dict[str, str]:
    """The name of each op's page. A name that could leave the folder, or that no file can have, gets a similar one."""
    files: dict[str, str] = {}
    for op in sorted(ops):
        base = re.sub(r"[^\w.+-]", "_", op, flags=re.ASCII).lstrip(".")[:_LONGEST_NAME] or "_"
        candidates = itertools.chain([base], (f"{base}_{i}" for i in itertools.count(1)))
        taken = {file.lower() for file in ("README.md", *files.values())}
        files[op] = next(f"{name}.md" for name in candidates if f"{name}.md".lower() not in taken)
    return files


def _name(op: str) -> str:
    """The name of an op's page: add for aten.add.Tensor; ops of StableHLO keep the name of the dialect."""
    parts = op.split(".")
    return parts[1] if parts[0] == "aten" else op


def _count(records: Sequence[Record]) -> str:
    return f"{sum(state(r) in ('match', 'eager-raises-same') for r in records)} of {len(records)}" if records else ""


def _page(name: str, forms: Sequence[Record], samples: Sequence[Record]) -> str:
    lines = [f"# {brief(name)}", ""]
    if forms:
        head = ("op", "inputs", "outputs", "attributes", "models", "status", "reached", "PCC", "ATOL", "why")
        lines += ["## In models", "", *table(head, _forms(forms)), ""]
        lines += ["Inputs and outputs as in the binary: shape, data type, memory, layout.", ""]
    if samples:
        rows = ((r["key"], state(r), "; ".join(map(brief, notes(r)))) for r in samples)
        lines += ["## Samples of OpInfo", "", *table(("sample", "status", "why"), rows), ""]
    return "\n".join(lines)


def _forms(records: Iterable[Record]) -> Iterator[Sequence[object]]:
    for its in sorted(by_form(records), key=lambda its: form_of(its[0])):
        op = its[0]
        sides = (_tensors(op, side) for side in ("input", "output"))
        measures = ("" if op.get(name) is None else f"{op[name]:.6g}" for name in ("pcc", "atol"))
        why = brief(op.get("message") or op.get("error") or "")
        labels = (op["framework_op_name"], *sides, _attributes(form_of(op)), ", ".join(models_of(its)), op["outcome"])
        yield (*labels, op["compilation_status"], *measures, why)


def _tensors(op: Record, side: str) -> str:
    described = op[f"{side}_tensors"]
    if not described:
        return ", ".join(op[f"{side}_shapes"])
    return ", ".join(f"{tuple(t['shape'])} {t['data_type']} {t['buffer_type']} {t['layout']}" for t in described)


def _attributes(form: str) -> str:
    """The arguments of a form, without the name of the op; tensors by dtype and shape."""
    return form.partition(" ")[2].replace("torch.", "")

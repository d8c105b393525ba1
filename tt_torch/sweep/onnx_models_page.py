"""Writes docs/onnx_models.md, the page of real ONNX models, from the records of `tt-torch sweep onnx-models`."""

from __future__ import annotations

from collections.abc import Sequence

from tt_torch.records.lines import Record
from tt_torch.records.markdown import brief, table
from tt_torch.sweep.onnx_models import SAME
from tt_torch.sweep.pages import origin

_HEAD = ("package", "model", "nodes", "device ops", "difference", "compile, s", "call, ms", "ONNX Runtime, ms", "error")


def page(records: Sequence[Record]) -> str:
    """How many models are right, and each model with its size, its difference from ONNX Runtime, and its times."""
    right = sum(record["verdict"] == "match" for record in records)
    threads = sorted({record["threads"] for record in records if "threads" in record})
    lines = [
        "# Real ONNX models",
        "",
        "Written by `tt-torch sweep docs` from `tt-torch sweep onnx-models`: models in the wheels of packages on PyPI,",
        "compiled with `tt_torch.compile_onnx`, and run on random inputs by the device and by ONNX Runtime.",
        *origin(records),
        "",
        f"{right} of {len(records)} models are right: no result differs from that of ONNX Runtime by more than",
        f"{SAME:g} of its largest magnitude. Nothing of a compiled model runs on the host.",
        "",
        "`difference` is this share. The time to compile includes the first call. The time of a call is the median",
        f"of 10. Threads of each side: {' or '.join(map(str, threads)) or 'none'}. The device is the emulated one,",
        "so the times say nothing about a chip.",
        "",
        *table(_HEAD, map(_row, records)),
    ]
    return "\n".join(lines) + "\n"


def _row(record: Record) -> Sequence[object]:
    name, package = record["key"].partition("/")[2], record.get("group", record["key"].partition("/")[0])
    error = "" if record["verdict"] == "match" else brief(f"{record['verdict']}: {record['message']}")
    if "call_seconds" not in record:
        return package, name, *[""] * 6, error
    milliseconds = (f"{record[side] * 1e3:.1f}" for side in ("call_seconds", "onnxruntime_seconds"))
    difference = f"{record['rtol']:.1e}" if "rtol" in record else ""
    ops = sum(record["device_ops"].values())
    return package, name, record["nodes"], ops, difference, f"{record['seconds']:.1f}", *milliseconds, error

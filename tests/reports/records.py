"""Records as sweeps write them, for the tests of the database and of reports."""

from __future__ import annotations

from typing import Any

HOST = {"op": "aten.histc.default", "count": 2, "reason": "no form <on> the device", "location": "m.py:3", "bytes": 8}


def record(kind: str, key: str, verdict: str = "match", commit: str = "c1", **fields: Any) -> dict[str, Any]:
    shared = {"commit": commit, "time": f"2026-01-0{commit[1]}T00:00:00+00:00", "versions": {"torch": "2"}}
    measured = {"host_ops": [], "graph_breaks": [], "static": True, "seconds": 0.5}
    problem = {} if verdict == "match" else {"error": "Mismatch", "message": "=values | differ"}
    return {"kind": kind, "key": key, "verdict": verdict, **shared, **measured, **problem, **fields}


def op(key: str, verdict: str = "match", **fields: Any) -> dict[str, Any]:
    return record("op", key, verdict, op=key.split("/")[0], dtype=key.split("/")[1], **fields)


def model(name: str, verdict: str = "match", **fields: Any) -> dict[str, Any]:
    figures = {"pcc": 0.9999, "atol": 1e-3, "binary_bytes": 2048, "device_ops": {"MatmulOp": 3}}
    return record("model", name, verdict, model=name, group="plain", **(figures | fields))


RECORDS = [
    op("add/float32/0"),
    op("add/int64/0", "wrong"),
    op("histc/float32/0", host_ops=[HOST]),
    model("resnet"),
    model("a_model_whose_name_is_very_long_indeed", host_ops=[HOST]),
    model("a_model_whose_name_is_very_long_indeed_2", "error"),
]

"""Writes docs/compilers.md, which compares our stages with tt-mlir, from the records of sweeps with both."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tt_torch.records.lines import Record
from tt_torch.records.markdown import brief, table
from tt_torch.records.summary import alone, good, notes
from tt_torch.sweep.pages import origin

Figure = Callable[[Record], float]
OURS, THEIRS = "tt-torch", "tt-mlir"
# What follows the cause in a reason of tt-mlir: the last line of a log, or types. It is different each time.
_DETAILS = re.compile(r"(died of SIG\w+|operand type mismatch): .*", re.DOTALL)
FIGURES: dict[str, Figure] = {
    "device ops": lambda record: sum(record["device_ops"].values()),
    "of them moves": lambda record: record["moves"],
    "bytes moved": lambda record: record["bytes_moved"],
    "modelled time": lambda record: record["modelled_seconds"],
}


@dataclass(frozen=True)
class Pair:
    """The records of one model, or of one sample of an op, by both compilers."""

    name: str
    ours: Record
    theirs: Record

    @property
    def comparable(self) -> bool:
        """Whether both programs are right, and run on the device alone."""
        return alone(self.ours) and alone(self.theirs)


def pairs(records: Sequence[Record], kind: str) -> tuple[list[Pair], list[str]]:
    """The pairs of a kind of records, in the order of our records, and our keys without a record of tt-mlir."""
    by_key = {record["key"]: _with_causes(record) for record in records if record["kind"] == kind}
    ours = {key: record for key, record in by_key.items() if record.get("compiler") == OURS}
    found = [Pair(key, ours[key], by_key[f"{key} {THEIRS}"]) for key in ours if f"{key} {THEIRS}" in by_key]
    return found, [key for key in ours if f"{key} {THEIRS}" not in by_key]


def _with_causes(record: Record) -> Record:
    """The record with only the causes in its reasons, so that equal ones are counted together."""
    ops = [op | {"reason": _DETAILS.sub(r"\1", op["reason"])} for op in record.get("host_ops", ())]
    return record | {"host_ops": ops}


def page(records: Sequence[Record]) -> str:
    """The page of both compilers: the cost of each model, and the models and ops that one of them gets wrong."""
    lines = [
        "# Both compilers",
        "",
        "Written by `tt-torch sweep docs` from `tt-torch sweep models --compiler tt-torch --compiler tt-mlir`, or the",
        "same for `sweep ops`. Programs are compiled by our stages and by [tt-mlir](tt_mlir.md) at its optimization",
        "level 0. They run on the emulated device, and their results are compared with those of eager PyTorch.",
        *origin(records),
        *_models(*pairs(records, "model")),
        *_ops(*pairs(records, "op")),
    ]
    return "\n".join(lines) + "\n"


def _models(models: Sequence[Pair], alone: Sequence[str]) -> list[str]:
    """The section of models; empty without models."""
    if not models:
        return []
    schemas = sorted({hash[:8] for pair in models for hash in pair.theirs.get("schemas", ())})
    compared = [pair for pair in models if pair.comparable]
    return [
        "",
        "## Models",
        "",
        f"Schema of tt-mlir's binaries: {', '.join(schemas)}.",
        "",
        *table(("compiler", "right", "without the host"), _verdicts(models)),
        "",
        f"The next two tables count the {len(compared)} models that both compilers get right without the host.",
        "A ratio is the geometric mean of tt-mlir's figure divided by ours.",
        "",
        *table(("", "fewer with tt-torch", "fewer with tt-mlir", "equal", "ratio"), _wins(compared)),
        "",
        "The largest difference is that of any result from eager PyTorch. Modelled times are those of the",
        "[roofline model](profiling.md).",
        "",
        *table(_head(), map(_costs, compared)),
        "",
        "The other models:",
        "",
        *table(("model", "tt-torch", "tt-mlir"), _others(models)),
        *_missing(alone),
    ]


def _ops(ops: Sequence[Pair], alone: Sequence[str]) -> list[str]:
    """The section of single ops; empty without ops."""
    if not ops:
        return []
    head = ("right, tt-torch", "right, tt-mlir", "without the host, tt-torch", "without the host, tt-mlir")
    return [
        "",
        "## Ops",
        "",
        *table(("data type", "samples", *head), _by_dtype(ops)),
        "",
        "Samples that only one of the compilers gets right:",
        "",
        *table(("sample", "tt-torch", "tt-mlir"), _differing(ops)),
        "",
        "Ops that tt-mlir refuses, so that they run on the host:",
        "",
        *table(("op", "reason", "samples"), _refused(ops)),
        *_missing(alone),
    ]


def _missing(alone: Sequence[str]) -> list[str]:
    return ["", f"The sweep did not come to {len(alone)} with tt-mlir: {', '.join(alone)}."] if alone else []


def _verdicts(found: Sequence[Pair]) -> Iterator[Sequence[object]]:
    for name, records in ((OURS, [p.ours for p in found]), (THEIRS, [p.theirs for p in found])):
        yield name, f"{sum(map(good, records))} of {len(records)}", sum(map(alone, records))


def _wins(compared: Sequence[Pair]) -> Iterator[Sequence[object]]:
    for name, figure in FIGURES.items():
        both = [(figure(pair.ours), figure(pair.theirs)) for pair in compared]
        ratios = [theirs / ours for ours, theirs in both if ours and theirs]
        ratio = f"{statistics.geometric_mean(ratios):.2f}" if ratios else ""
        yield name, sum(a < b for a, b in both), sum(a > b for a, b in both), sum(a == b for a, b in both), ratio


def _head() -> Sequence[str]:
    columns = ("device ops (moves)", "MB moved", "modelled µs", "largest difference")
    return ("model", *(f"{column}, {who}" for column in columns for who in (OURS, THEIRS)))


def _costs(pair: Pair) -> Sequence[object]:
    cells = [_cells(record) for record in (pair.ours, pair.theirs)]
    return (pair.name, *(cell for column in zip(*cells, strict=True) for cell in column))


def _cells(record: Record) -> Sequence[str]:
    ops, moves, moved, seconds = (figure(record) for figure in FIGURES.values())
    return f"{ops} ({moves})", f"{moved / 1e6:.2f}", f"{seconds * 1e6:.1f}", f"{record['atol']:.1e}"


def _others(models: Sequence[Pair]) -> Iterator[Sequence[object]]:
    for pair in models:
        if not pair.comparable:
            yield pair.name, _outcome(pair.ours), _outcome(pair.theirs)


def _outcome(record: Record) -> str:
    return "; ".join(map(brief, notes(record))) or "right"


def _by_dtype(ops: Sequence[Pair]) -> Iterator[Sequence[object]]:
    for dtype in dict.fromkeys(pair.ours["dtype"] for pair in ops):
        of = [pair for pair in ops if pair.ours["dtype"] == dtype]
        sides = ([pair.ours for pair in of], [pair.theirs for pair in of])
        yield dtype, len(of), *(sum(map(test, side)) for test in (good, alone) for side in sides)


def _differing(ops: Sequence[Pair]) -> Iterator[Sequence[object]]:
    for pair in ops:
        if good(pair.ours) != good(pair.theirs):
            yield pair.name, *("right" if good(r) else _outcome(r) for r in (pair.ours, pair.theirs))


def _refused(ops: Sequence[Pair]) -> Iterator[Sequence[object]]:
    found: Counter[tuple[str, str]] = Counter()
    for pair in ops:
        ours = {op["op"] for op in pair.ours.get("host_ops", ())}
        found.update(
            {(op["op"], brief(op["reason"])) for op in pair.theirs.get("host_ops", ()) if op["op"] not in ours}
        )
    for (op, reason), count in sorted(found.items(), key=lambda item: (-item[1], item[0])):
        yield op, reason, count

"""Counts of the records of a sweep."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Column, Table

from tt_torch.records.console import plain_console
from tt_torch.records.lines import Record, shortened

GOOD = ("match", "eager-raises-same")
COMPILE_SECONDS = 10.0  # of processor time: the limit for the compilation of one op
_TOP = 25
_WORST = 10


def print_summary(records: Sequence[Record], console: Console | None = None) -> None:
    """Prints verdicts per dtype, the share of samples with nothing on the host, reasons, and compile times.

    It also names each op that took too long to compile, and the first sample of each reason.
    """
    console = console or plain_console()
    console.print(_verdicts(records))
    for dtype, (alone, of) in device_only(records).items():
        console.print(
            f"{dtype}: {alone} of {of} samples with static shapes have nothing on the host ({alone / of:.1%})"
        )
    for title, reasons in (("not right", _failure), ("on the host", _on_host)):
        if any(map(reasons, records)):
            console.print(_table(title, records, reasons))
    for record in filter(slowness, records):
        console.print(f"slow: {record['key']}: {slowness(record)}", soft_wrap=True)
    timed = sorted((r for r in records if r.get("seconds") is not None), key=lambda r: -r["seconds"])
    if timed:
        console.print(f"\ncompile and first run: median {statistics.median(r['seconds'] for r in timed):.2f} s; worst:")
        for record in timed[:_WORST]:
            console.print(f"  {record['seconds']:7.2f} s  {record['key']}")


def as_facts(records: Sequence[Record]) -> Record:
    """What `print_summary` prints, in the types of JSON. Reasons are not limited to the most frequent ones."""
    timed = [record["seconds"] for record in records if record.get("seconds") is not None]
    return {
        "records": len(records),
        "verdicts": Counter(record["verdict"] for record in records),
        "device_only": {dtype: {"alone": alone, "of": of} for dtype, (alone, of) in device_only(records).items()},
        "not_right": failures(records),
        "on_the_host": host_reasons(records),
        "slow": [record["key"] for record in records if slowness(record)],
        "median_seconds": statistics.median(timed) if timed else None,
    }


def good(record: Record) -> bool:
    return record["verdict"] in GOOD


def slowness(record: Record) -> str:
    """The complaint about an op that took more than COMPILE_SECONDS to compile; "" for other records.

    It counts processor time, because other programs on the machine change the elapsed time much more.
    """
    seconds = record.get("cpu_seconds", 0.0)
    if record.get("kind") != "op" or not seconds > COMPILE_SECONDS:
        return ""
    return f"compiling took {seconds:.1f} s of processor time, more than {COMPILE_SECONDS:g} s"


def alone(record: Record) -> bool:
    """Whether the result is right and nothing ran on the host, neither in a graph nor between graphs."""
    between = record.get("graph_breaks") and record.get("between_graphs", True)
    return record["verdict"] == "match" and not record.get("host_ops") and not between


def device_only(records: Sequence[Record]) -> dict[str, tuple[int, int]]:
    """Per dtype: how many samples ran on the device alone, and how many of them eager can run with static shapes.

    ONNX models are not counted, because nothing of them runs on the host.
    """
    counted: dict[str, list[bool]] = defaultdict(list)
    for record in records:
        if (
            not record.get("kind", "").startswith("onnx")
            and record.get("static", True)
            and record["verdict"] != "eager-raises-same"
        ):
            counted[record.get("dtype", "all")].append(alone(record))
    return {dtype: (sum(each), len(each)) for dtype, each in counted.items()}


def failures(records: Sequence[Record]) -> Counter[str]:
    return Counter(reason for record in records for reason in _failure(record))


def host_reasons(records: Sequence[Record]) -> Counter[str]:
    """Each op and graph break on the host, counted once per sample."""
    return Counter(reason for record in records for reason in _on_host(record))


def _failure(record: Record) -> list[str]:
    told = f"{record['verdict']}: {record.get('error', '')}: {shortened(record.get('message', ''))}"
    return [] if good(record) else [told]


def _on_host(record: Record) -> list[str]:
    ops = [f"{op['op']}: {shortened(op['reason'])}" for op in record.get("host_ops", ())]
    return list(dict.fromkeys(ops + [f"graph break: {shortened(reason)}" for reason in record.get("graph_breaks", ())]))


def notes(record: Record) -> list[str]:
    """The reasons why a record is not right, slow to compile, or not on the device alone; each reason once."""
    error = [f"{record['verdict']}: {record.get('error', '')}: {record.get('message', '')}"] if not good(record) else []
    slow = [slowness(record)] if slowness(record) else []
    ops: Counter[str] = Counter()
    for op in record.get("host_ops", ()):
        ops[f"{op['op']}: {op['reason']}"] += op["count"]
    host = [f"{count} × {op}" if count > 1 else op for op, count in ops.items()]
    return (
        error + slow + host + list(dict.fromkeys(f"graph break: {reason}" for reason in record.get("graph_breaks", ())))
    )


def _verdicts(records: Sequence[Record]) -> Table:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        counts[record.get("dtype", "all")][record["verdict"]] += 1
    verdicts = sorted({verdict for each in counts.values() for verdict in each}, key=lambda v: (v not in GOOD, v))
    table = Table("dtype", *verdicts, "all")
    for dtype, each in counts.items():
        table.add_row(dtype, *[str(each[verdict]) for verdict in verdicts], str(each.total()))
    return table


def _table(title: str, records: Sequence[Record], reasons: Callable[[Record], Sequence[str]]) -> Table:
    """The most frequent reasons: how many records have each of them, and the key of the first one."""
    counts = Counter(reason for record in records for reason in reasons(record))
    first = {reason: record["key"] for record in reversed(records) for reason in reasons(record)}
    table = Table("samples", title, Column("first one", overflow="fold"))
    for reason, count in counts.most_common(_TOP):
        table.add_row(str(count), reason, first[reason])
    if len(counts) > _TOP:
        table.add_row("", f"... and {len(counts) - _TOP} more")
    return table

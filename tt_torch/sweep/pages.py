"""Writes docs/ops.md and docs/models.md from the records of sweeps."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from tt_torch.records.lines import Record
from tt_torch.records.markdown import brief, table
from tt_torch.records.summary import COMPILE_SECONDS, alone, device_only, good, notes, slowness


def ops_page(records: Sequence[Record]) -> str:
    """The page of all ops: which run on the device alone, which need the host and why, and which are not right."""
    dtypes = list(dict.fromkeys(record["dtype"] for record in records))
    lines = [
        "# Ops",
        "",
        "Written by `tt-torch sweep docs` from a sweep over PyTorch's OpInfo database: samples of each op and data",
        "type are compiled with `torch.compile(backend=tt_torch.backend)` and compared with eager PyTorch.",
        f"This page has {len(records)} samples of {len({r['key'].split('/')[0] for r in records})} ops.",
        *origin(records),
        "",
        *table(("dtype", "samples", "right", "static shapes", "of these, without the host"), _totals(records)),
        "",
        "A sample is right if it gives the same values as eager PyTorch, or the same exception. It has static shapes",
        "if the shapes of its results follow from those of its arguments, and eager PyTorch raises nothing.",
        "",
        "## Not right",
        "",
        *table(("sample", "verdict", "error"), _failures(records)),
        "",
        f"## More than {COMPILE_SECONDS:g} s of processor time to compile",
        "",
        *table(("sample", "seconds"), _slow(records)),
        "",
        "## On the host, and why",
        "",
        *table(("op on the host", "reason", "samples", "in"), _reasons(records)),
        "",
        "## All ops",
        "",
        "The number of samples that ran without the host, of all that were compared. A cell is empty if the op does",
        "not take the data type.",
        "",
        *table(("op", *dtypes), _by_op(records, dtypes)),
    ]
    return "\n".join(lines) + "\n"


def models_page(records: Sequence[Record]) -> str:
    """The page of all models: which run, how close they are to eager, what needs the host, and which generate."""
    models = [record for record in records if record["kind"] == "model"]
    texts = {record["model"]: record for record in records if record["kind"] == "generation"}
    right, equal = sum(map(alone, models)), sum(map(alone, texts.values()))
    lines = [
        "# Models",
        "",
        "Written by `tt-torch sweep docs` from `tt-torch sweep models`: small models of each family, with random",
        "weights, compiled with `torch.compile(backend=tt_torch.backend)` and compared with eager PyTorch in float32.",
        *origin(records),
        "",
        f"{right} of {len(models)} run without the host, with a correlation (PCC) of at least 0.99.",
        "",
        f"The last three columns are from `tt-torch sweep models --generate`: {equal} of {len(texts)} models generate",
        "eager PyTorch's tokens, twice in a row, without the host. The cache is static. *Programs* are those that both",
        "calls need, and *recompilations* those of them that come after the second token, while the text grows.",
        "",
        *table(_COLUMNS, [_model(record) + _text(texts.get(record["model"])) for record in models]),
    ]
    return "\n".join(lines) + "\n"


_COLUMNS = (
    "model", "package", "PCC", "largest difference", "on the host or wrong", "tokens equal", "programs",
    "recompilations",
)  # fmt: skip


def _model(record: Record) -> tuple[object, ...]:
    figures = (f"{record['pcc']:.6f}", f"{record['atol']:.1e}") if "pcc" in record else ("", "")
    return (record["model"], record.get("group", ""), *figures, "; ".join(map(brief, notes(record))))


def _text(record: Record | None) -> tuple[object, ...]:
    """The columns of the text that a model generated; they are empty if it generates none."""
    if record is None:
        return "", "", ""
    told = "; ".join(map(brief, notes(record))) or str(record["tokens"])
    return told, record.get("programs", ""), record.get("recompilations", "")


def origin(records: Iterable[Record]) -> list[str]:
    commits = sorted({str(record["commit"]) for record in records})
    versions = sorted({f"{name} {value}" for record in records for name, value in record["versions"].items()})
    return [f"Commit {', '.join(commits)}; {', '.join(versions)}."]


def _totals(records: Sequence[Record]) -> Iterator[Sequence[object]]:
    counts = Counter(record["dtype"] for record in records)
    right = Counter(record["dtype"] for record in records if good(record))
    for dtype, (count, static) in device_only(records).items():
        yield dtype, counts[dtype], right[dtype], static, f"{count} ({count / static:.1%})"


def _failures(records: Iterable[Record]) -> Iterator[Sequence[object]]:
    for record in records:
        if not good(record):
            yield record["key"], record["verdict"], brief(f"{record['error']}: {record['message']}")


def _slow(records: Iterable[Record]) -> Iterator[Sequence[object]]:
    for record in filter(slowness, records):
        yield record["key"], f"{record['cpu_seconds']:.1f}"


def _reasons(records: Iterable[Record]) -> Iterator[Sequence[object]]:
    samples: dict[tuple[str, str], list[str]] = defaultdict(list)
    for record in records:
        found = {(op["op"], brief(op["reason"])) for op in record.get("host_ops", ())}
        found |= {("graph break", brief(reason)) for reason in record.get("graph_breaks", ())}
        for cause in found:
            samples[cause].append(record["key"].split("/")[0])
    for (op, reason), keys in sorted(samples.items(), key=lambda item: (-len(item[1]), item[0])):
        names = list(dict.fromkeys(keys))
        yield op, reason, len(keys), ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _by_op(records: Iterable[Record], dtypes: Sequence[str]) -> Iterator[Sequence[object]]:
    cells: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record["verdict"] != "eager-raises-same":
            cells[record["key"].split("/")[0]][record["dtype"]].append(alone(record))
    for op, by_dtype in sorted(cells.items()):
        yield op, *[f"{sum(by_dtype[d])} of {len(by_dtype[d])}" if d in by_dtype else "" for d in dtypes]

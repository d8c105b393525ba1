"""Writes docs/onnx_tests.md, the page of ONNX's own backend tests, from the records of `tt-torch sweep onnx`."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from tt_torch.records.lines import Record
from tt_torch.records.markdown import brief, table
from tt_torch.sweep.onnx_tests import HELD
from tt_torch.sweep.pages import origin

VERDICTS = ("match", "wrong", "refused", "error", "crash", "timeout")
_NUMBERS = re.compile(r"\d+")
_SHOWN = 4  # tests that a row names


def page(records: Sequence[Record]) -> str:
    """The totals by type, the tests that are wrong or end in an internal error, and why the others are refused."""
    held = [record for record in records if record.get("dtype") == HELD]
    right = sum(record["verdict"] == "match" for record in held)
    bound = sum(bool(record.get("constants")) for record in records)
    lines = [
        "# ONNX's backend tests",
        "",
        "Written by `tt-torch sweep docs` from `tt-torch sweep onnx`: the tests of the package `onnx`, compiled with",
        "`tt_torch.compile_onnx` and compared with the results that come with them.",
        *origin(records),
        "",
        f"{right} of the {len(held)} tests with types that TTNN can hold are right ({right / max(1, len(held)):.1%}).",
        f"In {bound} of all tests, inputs that decide shapes or axes were given as constants.",
        "",
        *table(("types", *VERDICTS, "all"), _totals(records)),
        "",
        "A row other than the first has the tests with an input or a result of this type, which TTNN cannot hold.",
        "All other tests are in the first row: also those with 64-bit numbers, which the device computes in 32 bits,",
        "with sequences inside, or with results whose shapes depend on values.",
        "",
        "## Not right and not refused",
        "",
        *table(("test", "verdict", "error"), _failures(records)),
        "",
        "## Refused, and why",
        "",
        "This lists the tests with types that TTNN can hold. `N` stands for a number.",
        "",
        *table(("tests", "error", "among them"), _refused(held)),
    ]
    return "\n".join(lines) + "\n"


def _totals(records: Sequence[Record]) -> Iterator[Sequence[object]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        counts[record.get("dtype", "unknown")][record["verdict"]] += 1
    for dtype, each in sorted(counts.items(), key=lambda item: (item[0] != HELD, -item[1].total(), item[0])):
        yield dtype, *(each[verdict] for verdict in VERDICTS), each.total()


def _failures(records: Sequence[Record]) -> Iterator[Sequence[object]]:
    for record in records:
        if record["verdict"] not in ("match", "refused"):
            yield record["key"], record["verdict"], brief(f"{record['error']}: {record['message']}")


def _refused(records: Sequence[Record]) -> Iterator[Sequence[object]]:
    found: dict[str, list[str]] = defaultdict(list)
    for record in records:
        if record["verdict"] == "refused":
            found[brief(_NUMBERS.sub("N", f"{record['error']}: {record['message']}"))].append(record["key"])
    for reason, keys in sorted(found.items(), key=lambda item: (-len(item[1]), item[0])):
        more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
        yield len(keys), reason, ", ".join(keys[:_SHOWN]) + more

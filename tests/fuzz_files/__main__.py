"""Makes hostile files and reads them by everything that reads such files. docs/reliability.md describes the kinds."""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz_files import children, kinds, reading


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_files", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first number is a billion times this")
    parser.add_argument("--count", type=int, default=1000, help="files of each kind")
    parser.add_argument("--minutes", type=float, help="instead of --count: take turns until this time has passed")
    parser.add_argument("--kind", action="append", choices=list(kinds.KINDS), help="may be repeated; default: all")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, default=Path("fuzz_findings"), help="folder for findings")
    parser.add_argument("--file", type=Path, help="only read this file, in this process")
    options = parser.parse_args()
    if options.file:
        with tempfile.TemporaryDirectory() as scratch:
            print(reading.try_file(options.file.suffix, options.file.read_bytes(), Path(scratch), reading.device()))
        return 0
    kinds.prepare()
    gc.freeze()
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    chosen, began = options.kind or list(kinds.KINDS), time.monotonic()
    outcomes: dict[str, Counter[str]] = {kind: Counter() for kind in chosen}
    first = options.seed * 10**9
    step = children.CHUNK if options.minutes else options.count
    while True:
        for kind in chosen:
            outcomes[kind] += children.fuzz(kind, first, step, options.jobs, options.output)
        first += step
        if not options.minutes or time.monotonic() - began > 60 * options.minutes:
            break
    total = sum(outcomes.values(), Counter())
    for kind, counts in {**outcomes, "all": total}.items():
        print(f"{kind:8} {counts.total():9,}: {', '.join(f'{n:,} {what}' for what, n in counts.most_common())}")
    seconds = time.monotonic() - began
    print(f"{total.total() / seconds:,.0f} files per second")
    findings = sum(total[outcome] for outcome in children.FINDINGS)
    if findings:
        print(f"{findings:,} findings in {options.output}")
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())

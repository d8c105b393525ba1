"""Makes files of results, as `tt-torch report import` reads them, with damaged values or bytes."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

from tests.fuzz_files.damage import anywhere
from tests.reports.records import RECORDS
from tests.reports.test_hostile_reports import ODD, TEST, UNIQUE, damaged
from tests.reports.test_unique_ops import DONE, REFUSED, written

CASES = (
    '<testsuites><testsuite name="s" timestamp="2026-01-01T00:00:00"><properties><property name="commit" value="c1"/>'
    '</properties><testcase classname="a" name="b" time="1,234.5"><properties><property name="shapes" value="[1, 2]"/>'
    '</properties><failure type="AssertionError" message="no"/></testcase></testsuite></testsuites>'
)


@cache
def _op_by_op() -> str:
    with tempfile.TemporaryDirectory() as folder:
        return written(Path(folder), "m", relu=DONE, erf=REFUSED).read_text()


def _lines(rng: random.Random) -> bytes:
    records = (damaged(rng, rng.choice([*RECORDS, UNIQUE, TEST])) for _ in range(rng.randint(1, 3)))
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def _document(rng: random.Random) -> bytes:
    return json.dumps(damaged(rng, json.loads(_op_by_op()))).encode()


def _cases(rng: random.Random) -> bytes:
    root = ElementTree.fromstring(CASES)
    for _ in range(rng.randint(1, 3)):
        element = rng.choice(list(root.iter()))
        name = rng.choice(list(element.attrib) or ["time"])
        element.set(name, str(rng.choice(ODD)).replace("\ud800", ""))
    return ElementTree.tostring(root)


WRITERS = {".jsonl": _lines, ".json": _document, ".xml": _cases}


def document(rng: random.Random, number: int) -> Iterator[tuple[str, bytes]]:
    """The ending of a file's name, and its bytes."""
    ending = rng.choice(list(WRITERS))
    data = WRITERS[ending](rng)
    return ending, data if rng.random() < 0.8 else anywhere(rng, data, CASES.encode())

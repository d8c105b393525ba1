"""Draws places of the Python package at random, and finds those of a log again."""

from __future__ import annotations

import ast
import itertools
import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.mutation.equivalent import equivalent
from tests.mutation.places import KEY, Place, places_in

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tt_torch"
# The same number of places is drawn from each of these parts, and in a part, the same number of each kind.
PARTS = (
    "dynamo/decompositions dynamo/passes dynamo/exactness dynamo/buckets dynamo/complex_pairs dynamo driver "
    "codegen mlir/stablehlo mlir/ttir/from_stablehlo mlir/ttir/passes mlir/ttnn mlir/ttnn/passes mlir wire"
).split()
# These run in another Python, beside the ttnn package, and the conformance tests run them there.
OUTSIDE = ("codegen/ttnn_worker/", "codegen/environment.py", "codegen/kernel_elf.py")


def places_of(part: str) -> Iterator[Place]:
    """Places in the files of a part. Folders in it that are parts themselves are left out."""
    inner = [PACKAGE / other for other in PARTS if other.startswith(f"{part}/")]
    for file in sorted((PACKAGE / part).rglob("*.py")):
        outside = file.relative_to(PACKAGE).as_posix().startswith(OUTSIDE)
        if not outside and not any(file.is_relative_to(i) for i in inner):
            yield from places_in(str(file.relative_to(ROOT)), file.read_bytes())


def draw(count: int, seed: int) -> list[Place]:
    """`count` places that parse after the change, and that are not in the list of equivalent changes."""
    chance = random.Random(seed)
    drawn: list[Place] = []
    for number, part in enumerate(PARTS, 1):
        by_kind: dict[str, list[Place]] = defaultdict(list)
        for place in places_of(part):
            if not equivalent(place):
                by_kind[place.kind].append(place)
        for places in by_kind.values():
            chance.shuffle(places)
        in_turn = itertools.chain.from_iterable(itertools.zip_longest(*by_kind.values()))
        wanted = count * number // len(PARTS) - len(drawn)
        drawn += itertools.islice((place for place in in_turn if place and parses(place)), wanted)
    return drawn


def left(log: Path, places: Iterable[Place]) -> list[Place]:
    """The places whose last verdict in a log is not "noticed". Equivalent changes are left out."""
    verdicts = [json.loads(line) for line in log.read_text().splitlines()]
    last = {tuple(v[field] for field in KEY): v["outcome"] for v in verdicts}
    keys = {key for key, outcome in last.items() if outcome != "noticed"}
    return [place for place in places if place.key in keys and not equivalent(place)]


def every_place() -> Iterator[Place]:
    return itertools.chain.from_iterable(map(places_of, PARTS))


def parses(place: Place) -> bool:
    try:
        ast.parse(place.apply((ROOT / place.path).read_bytes()))
    except SyntaxError:
        return False
    return True

"""Looks for two compilations with one key of the compile cache and different results.

`python -m tests.driver.key_pairs FIRST COUNT` takes random programs, and variants of each that differ in one number, or
in the dtype or the strides of one input. It compiles each of them. It compares what the cache would keep with earlier
content under the same key.
"""

from __future__ import annotations

import copy
import random
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch

import tt_torch
from tt_torch.driver.cache.store import Store
from tt_torch.fuzz.programs import Program, generate
from tt_torch.fuzz.statements import DTYPES

NUMBER = re.compile(r"(?<![\w.])-?\d+(\.\d+)?(e-?\d+)?(?![\w.])")
NUMBERS = ("0", "1", "2", "-1", "3", "0.5", "1.0", "-0.0", "True", "2.5")


def variants(draw: random.Random, program: Program) -> Iterator[Program]:
    yield program
    for i, statement in enumerate(program.statements):
        found = list(NUMBER.finditer(statement.text))
        for match in draw.sample(found, min(2, len(found))):
            text = statement.text[: match.start()] + draw.choice(NUMBERS) + statement.text[match.end() :]
            changed = replace(statement, text=text)
            yield replace(program, statements=(*program.statements[:i], changed, *program.statements[i + 1 :]))
    for name, x in program.inputs.items():
        others = [x.to(draw.choice(DTYPES))]
        if x.dim():
            others += [x.transpose(0, -1).contiguous().transpose(0, -1), x.repeat_interleave(2, -1)[..., ::2]]
        for other in others:
            yield replace(program, inputs={**program.inputs, name: other})


def disagreements(seeds: Iterable[int], length: int) -> tuple[list[str], bool]:
    """The sources of programs whose key came before with another result, and whether any key came twice."""
    kept: dict[str, Any] = {}
    wrong: list[str] = []
    source, repeated = "", False

    def write(store: Store, key: str, data: Any, tensors: dict[str, torch.Tensor]) -> None:
        nonlocal repeated
        content = repr(data), {n: (x.dtype, x.shape, x.numpy(force=True).tobytes()) for n, x in tensors.items()}
        repeated |= key in kept
        if kept.setdefault(key, content) != content:
            wrong.append(source)

    with patch.object(Store, "read", lambda store, key: None), patch.object(Store, "write", write), torch.no_grad():
        for seed in seeds:
            for program in variants(random.Random(seed), generate(seed, length)):
                source = program.source()
                _compile(program)
    return wrong, repeated


def _compile(program: Program) -> None:
    """Compiles a program if eager PyTorch can run it, and PyTorch's shape functions can trace it."""
    inputs = list(program.inputs.values())
    try:
        program.function()(*copy.deepcopy(inputs))
        torch.compiler.reset()
        torch.compile(program.function(), backend="aot_eager", dynamic=False)(*copy.deepcopy(inputs))
    except Exception:
        return
    torch.compiler.reset()
    torch.compile(program.function(), backend=tt_torch.backend, dynamic=False)(*copy.deepcopy(inputs))


if __name__ == "__main__":
    first, count = map(int, sys.argv[1:])
    found, repeated = disagreements(range(first, first + count), length=4)
    if not repeated:
        sys.exit("no key came twice: is the compile cache off?")
    print("\n".join(found) or "no two results have one key")
    sys.exit(bool(found))

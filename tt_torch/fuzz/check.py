"""One random program: does it compute what eager computes? If not, the smallest part of it that does not."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import torch

import tt_torch
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.dynamo.types import Function
from tt_torch.errors import CompileError
from tt_torch.fuzz.programs import Program, Statement, generate
from tt_torch.fuzz.tolerance import RUNS, OtherRoundings, difference
from tt_torch.records.lines import Record

Tensors = list[torch.Tensor]
MATCH, REFUSED, AS_TRACED = "match", "refused", "as-traced"
NO_FINDING = (MATCH, REFUSED, AS_TRACED)


def _compiled(function: Function, inputs: Tensors, **options: str) -> Tensors:
    config = BackendOptions(compiler_config=CompilerConfig(**options))  # type: ignore[arg-type]
    backend = partial(tt_torch.backend, options=config)
    return [*torch.compile(function, backend=backend, dynamic=False)(*inputs), *inputs]


def _ahead_of_time(function: Function, inputs: Tensors) -> Tensors:
    model = tt_torch.compile_model(function, [x.clone() for x in inputs])
    return [*model(*inputs), *inputs]


def _eager_on_tt(function: Function, inputs: Tensors) -> Tensors:
    moved = [x.to("tt") for x in inputs]
    return [x.cpu() for x in (*function(*moved), *moved)]


# Each gives the results, then the inputs as the program leaves them.
WAYS = {
    "compile": _compiled,
    "bf16": lambda function, inputs: _compiled(function, inputs, dtype="bf16"),
    "aot": _ahead_of_time,
    "tt": _eager_on_tt,
}


def run_seed(seed: int, way: str, length: int) -> Record:
    """The record of a program: the verdict "match", "refused" if we or PyTorch say that it cannot be compiled,
    "as-traced" if PyTorch's own tracing departs from eager in the same way, or "mismatch" with the difference and the
    source of the smallest program that has it."""
    logging.getLogger("torch").setLevel(logging.CRITICAL)  # PyTorch logs each of its refusals
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = generate(seed, length)
        found = wrong(program, way)
        if found in NO_FINDING:
            return {"verdict": found}
        smallest, found = shrunk(program, way, found)
        return {"verdict": "mismatch", "message": found, "source": source(smallest)}


def wrong(program: Program, way: str) -> str:
    """How the program departs from eager: one of NO_FINDING, or a line of text."""
    torch.compiler.reset()
    function = program.function()
    inputs = list(program.inputs.values())
    # The options of eager on "tt" and of an ahead-of-time compilation do not change dtypes.
    least = torch.finfo(torch.bfloat16).eps if way == "bf16" else 0.0
    expected = _eager(function, inputs)
    others = [_eager(function, inputs, OtherRoundings(seed, least)) for seed in range(RUNS)]
    try:
        got = WAYS[way](function, [x.clone() for x in inputs])
    except Exception as error:
        return REFUSED if _is_refusal(error, function, inputs) else f"{type(error).__name__}: {str(error)[:300]}"
    if not (found := _departure(program, got, expected, others)):
        return MATCH
    traced = _traced(function, inputs) if way != "tt" else None
    return AS_TRACED if traced and not _departure(program, got, traced, others) else found


def _departure(program: Program, got: Tensors, expected: Tensors, others: list[Tensors]) -> str:
    names = [*program.outputs, *(f"input {name}" for name in program.inputs)]
    for name, a, b, *moved in zip(names, got, expected, *others, strict=True):
        if found := difference(a, b, moved):
            return f"{name}: {found}"
    return ""


def _is_refusal(error: Exception, function: Function, inputs: Tensors) -> bool:
    """Whether one binary cannot have the program, or PyTorch cannot trace it for any backend."""
    return isinstance(error, CompileError) or _traced(function, inputs) is None


def _traced(function: Function, inputs: Tensors) -> Tensors | None:
    """The results of PyTorch's own tracing without a compiler behind it; None if it cannot trace the program."""
    torch.compiler.reset()
    own = [x.clone() for x in inputs]
    try:
        return [*torch.compile(function, backend="aot_eager", dynamic=False)(*own), *own]
    except Exception:
        return None


def _eager(function: Function, inputs: Tensors, roundings: OtherRoundings | None = None) -> Tensors:
    own = [x.clone() for x in inputs]
    with roundings or nullcontext():
        return [x.clone() for x in (*function(*own), *own)]


def shrunk(program: Program, way: str, found: str) -> tuple[Program, str]:
    """The smallest program that still departs from eager, and how it does. `found` is how the whole program does.

    A smaller program has one output, and the value of a statement as an input instead of the statement.
    """
    while True:
        for smaller in _smaller(program):
            if (departs := wrong(smaller, way)) not in NO_FINDING:
                program, found = smaller, departs
                break
        else:
            return program, found


def _smaller(program: Program) -> Iterator[Program]:
    if len(program.outputs) > 1:
        for output in program.outputs:
            yield replace(program, outputs=(output,)).without_dead_code()
    for i, statement in reversed(list(enumerate(program.statements))):
        if statement.result not in program.outputs:
            yield _given(program, i)


def _given(program: Program, index: int) -> Program:
    """The program with the value of a statement as an input."""
    before: tuple[Statement, ...] = program.statements[: index + 1]
    name = before[-1].result
    upto = replace(program, statements=before, outputs=(name,))
    (value,) = upto.function()(*[x.clone() for x in program.inputs.values()])
    inputs = {**program.inputs, name: value.clone()}
    rest = (*program.statements[:index], *program.statements[index + 1 :])
    return replace(program, inputs=inputs, statements=rest).without_dead_code()


def source(program: Program) -> str:
    """The program as a script that shows the difference."""
    inputs = "\n".join(f"{name} = {_literal(value)}" for name, value in program.inputs.items())
    arguments = ", ".join(f"{name}.clone()" for name in program.inputs)
    return f"""import torch
import tt_torch
from torch import inf, nan

{inputs}


{program.source()}

print(torch.compile(program, backend=tt_torch.backend)({arguments}))
print(program({arguments}))
"""


def _literal(value: torch.Tensor) -> str:
    flat: Sequence[object] = value.tolist()
    made = f"torch.tensor({flat!r}, dtype={value.dtype})"
    return made if value.numel() else f"torch.empty({list(value.shape)}, dtype={value.dtype})"

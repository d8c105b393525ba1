"""Checks whether a random program computes what eager computes, and finds the smallest part of it that does not."""

from __future__ import annotations

import copy
import logging
import re
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch

from tt_torch.dynamo.types import Function
from tt_torch.errors import ArgumentError, CompileError
from tt_torch.fuzz.meshes import is_refused, simpler, with_value
from tt_torch.fuzz.programs import Program, Statement, generate, trainable
from tt_torch.fuzz.tolerance import DOUBTED, RUNS, OtherRoundings, difference, memory
from tt_torch.fuzz.ways import EAGER, TRACED, WAYS, Seen, StridesOfShapeFunctions, Way, run
from tt_torch.records.lines import Record
from tt_torch.torch_private.dynamo import TorchRuntimeError
from tt_torch.torch_private.tensors import storage_of

MATCH, REFUSED, AS_TRACED, IN_DTYPE = "match", "refused", "as-traced", "in-dtype"
_OUT_OF_RANGE = re.compile("out of (DATA )?bounds|out of range|without overflow")
NO_FINDING = (MATCH, REFUSED, AS_TRACED, IN_DTYPE)


def run_seed(seed: int, way: str, length: int, samples: bool = False, views: bool = False) -> Record:
    """The record of a program. Its verdict is "match", or "refused" if we or PyTorch say that it cannot be compiled.
    It is "as-traced" if PyTorch's own tracing departs from eager in the same way, and "in-dtype" if PyTorch gives these
    results when it computes in the dtype of the device. Otherwise it is "mismatch": then the record has the difference
    and the source of the smallest program that shows it."""
    logging.getLogger("torch").setLevel(logging.CRITICAL)  # PyTorch logs each of its refusals
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = generate(seed, length, WAYS[way].on_chips, samples, views)
        if WAYS[way].bf16:
            program = program.in_range_of_bf16()
        found = wrong(program, way)
        if found in NO_FINDING:
            return {"verdict": found}
        smallest, found = shrunk(program, way, found)
        return {"verdict": "mismatch", "message": found, "source": source(smallest, way)}


def wrong(program: Program, way: str) -> str:
    """How the program departs from eager: one of NO_FINDING, or a line of text."""
    torch.compiler.reset()
    chosen, function = WAYS[way], program.function()
    # A copy to a device loses gaps in memory, so the CPU also computes without them then.
    inputs = [x if chosen.device == "cpu" else x.clone() for x in program.inputs.values()]
    trains = program.trains
    try:
        expected = run(function, inputs, EAGER, trains)
    except (RuntimeError, IndexError):  # eager refuses the inputs without gaps, or what a step of training made of them
        return REFUSED
    try:
        got = run(function, inputs, chosen, trains, program.split)
    except Exception as error:
        if _is_refusal(error, program, way):
            return REFUSED
        return f"{type(error).__name__}: {str(getattr(error, 'inner_exception', error))[:300]}"
    if program.split:
        got = [replace(x, strides=own.strides, first=own.first) for x, own in zip(got, expected, strict=True)]
    if not _departure(program, got, expected, []):  # other roundings only allow more, and they take most of the time
        return MATCH
    others: list[list[Seen]] = []
    for seeds in (range(RUNS), range(RUNS, DOUBTED)):
        others += _with_other_roundings(function, inputs, trains, chosen, seeds)
        if not (found := _departure(program, got, expected, others)):
            return MATCH
    if chosen == WAYS["tt"]:
        return found
    traced = _traced(function, inputs, trains) or expected
    for strides in (traced, _of_shape_functions(function, inputs, trains)):
        as_traced = [replace(x, strides=own.strides) for x, own in zip(traced, strides, strict=False)]
        if not _departure(program, got, as_traced, others):
            return AS_TRACED
    return IN_DTYPE if _is_in_dtype(program, got, expected, traced, chosen) else found


def _is_refusal(error: Exception, program: Program, way: str) -> bool:
    """Whether an error of a way says that we, or PyTorch, do not do this."""
    chosen, function, inputs = WAYS[way], program.function(), list(program.inputs.values())
    # A shape function of PyTorch raises TorchRuntimeError.
    refused = is_refused(error) if chosen.on_chips else isinstance(error, (CompileError, TorchRuntimeError))
    if refused or _is_of_guards(error):
        return True
    if _traced(function, inputs, program.trains) is None:
        return True
    # torch.compile runs an op with such a formula on the host, and takes inputs that overlap.
    if way == "aot" and (_is_of_a_formula(error) or isinstance(error, ArgumentError)):
        return True
    # An index that is the exponent of a rounding error is out of range with some roundings.
    out_of_range = bool(_OUT_OF_RANGE.search(str(error)))
    return out_of_range and [] in _with_other_roundings(function, inputs, program.trains, chosen)


def _is_of_guards(error: Exception) -> bool:
    """Whether Dynamo fails to guard its inputs, as it does in all backends where a graph changes the shape of an input
    in place by another name, such as `y = x.mul_(1); y.unsqueeze_(2)`."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return any(file.endswith("torch/_dynamo/guards.py") for file in files)


def _is_of_a_formula(error: Exception) -> bool:
    """Whether a formula of PyTorch refuses its operands, which its kernel takes: `addcmul` of integers by -2.0."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return "tt_torch" not in files[-1] and any(file.endswith("torch/_refs/__init__.py") for file in files)


def _with_other_roundings(
    function: Function,
    inputs: Sequence[torch.Tensor],
    trains: bool,
    way: Way,
    seeds: Sequence[int] = range(RUNS),
    in_float16: bool = False,
) -> list[list[Seen]]:
    chosen = (OtherRoundings(seed, way.bf16, in_float16, way.on_chips) for seed in (None, *seeds))
    return [_moved(function, inputs, trains, roundings) for roundings in chosen]


def _is_in_dtype(program: Program, got: list[Seen], expected: list[Seen], traced: list[Seen], way: Way) -> bool:
    """Whether eager, or PyTorch's own tracing, gives these results if it computes in the dtype of the device, and
    converts at the end. The strides and the memory are those of `expected` or of `traced`, in the program's dtypes."""
    converted = program.in_dtype(torch.bfloat16 if way.bf16 else torch.float32)
    function, inputs, trains = converted.function(), list(converted.inputs.values()), program.trains
    try:
        candidates = [run(function, inputs, EAGER, trains), _traced(function, inputs, trains)]
        in_float16 = program.has_float16 and not way.bf16  # some of its results are rounded to float16
        moved = _with_other_roundings(function, inputs, trains, way, range(DOUBTED), in_float16)
        others = [_as(expected, other) for other in moved]
    except RuntimeError:  # this dtype does not have a number of the program
        return False
    for each in filter(None, candidates):
        for forms in (expected, traced):
            own = _as(forms, each)
            own = [_mixed(x, a, form) for x, a, form in zip(own, got, forms, strict=True)]
            for i, x in enumerate(inputs, len(program.outputs)):
                if not difference(each[i].value, x, []):  # not written, so the conversion does not matter
                    own[i] = forms[i]
            around = len(own) - len(inputs)
            own[around:] = forms[around:]  # the memory around an input is never written
            if not _departure(program, got, own, others):
                return True
    return False


def _mixed(own: Seen, got: Seen, form: Seen) -> Seen:
    """The result in the dtype of the device, with the elements of `form` that `got` has, too. A call with integers
    beyond those of the device runs in eager PyTorch, and its gradient runs on the device. Numbers beyond those of
    float16 are infinite if they pass from one to the other."""
    if got.value.dtype != form.value.dtype or not got.value.shape == form.value.shape == own.value.shape:
        return own
    return replace(own, value=torch.where(torch.isclose(got.value, form.value, equal_nan=True), form.value, own.value))


def _as(forms: Sequence[Seen], results: Sequence[Seen]) -> list[Seen]:
    """The results in the dtypes, strides and memory of `forms`. A result of another shape keeps its strides."""
    return [
        replace(
            form,
            value=x.value.to(form.value.dtype),
            strides=form.strides if x.value.shape == form.value.shape else x.strides,
        )
        for form, x in zip(forms, results, strict=False)
    ]


def _departure(program: Program, got: list[Seen], expected: list[Seen], others: list[list[Seen]]) -> str:
    names = [*program.outputs, *(f"input {name}" for name in program.inputs)]
    names += [f"gradient {i}" for i in range(len(expected) - len(names) - len(program.inputs))]
    names += [f"memory around {name}" for name in program.inputs]
    if len(got) != len(expected):
        return f"{len(got)} tensors, expected {len(expected)}"
    others = [other for other in others if len(other) == len(expected)]
    for i, (name, a, b, *moved) in enumerate(zip(names, got, expected, *others, strict=True)):
        if found := difference(a.value, b.value, [other.value for other in moved]):
            return f"{name}: {found}"
        # The shape of `nonzero` depends on roundings, and its strides depend on its shape.
        alike = [x.strides for x in (b, *moved) if x.value.shape == a.value.shape]
        if alike and a.strides not in alike:
            return f"{name}: strides {a.strides}, expected {b.strides}"
        if a.has_gradients != b.has_gradients:
            return f"{name}: has{'' if a.has_gradients else ' no'} gradients"
        # In eager, the gradients of the parts of one tensor are apart in one memory. They may also have memories of
        # their own.
        if a.first != b.first and not (name.startswith("gradient") and a.first == i):
            return f"{name}: shares memory with {names[a.first]}, expected {names[b.first]}"
    return ""


def _traced(function: Function, inputs: Sequence[torch.Tensor], trains: bool) -> list[Seen] | None:
    """The results of PyTorch's own tracing without a compiler behind it; None if it cannot trace the program."""
    torch.compiler.reset()
    try:
        return run(function, inputs, TRACED, trains)
    except Exception:
        return None


def _of_shape_functions(function: Function, inputs: Sequence[torch.Tensor], trains: bool) -> list[Seen]:
    """The results in the strides of PyTorch's shape functions; none if a view does not take these strides."""
    try:
        with StridesOfShapeFunctions():
            return run(function, inputs, EAGER, trains)
    except RuntimeError:
        return []


def _moved(function: Function, inputs: Sequence[torch.Tensor], trains: bool, roundings: OtherRoundings) -> list[Seen]:
    """Eager's results with other roundings; none if an index or an integer that they change is out of range."""
    converted = roundings.converted(inputs)  # outside, where nothing changes the ops of the conversion
    try:
        with roundings:
            return run(function, converted, EAGER, trains)
    except (IndexError, RuntimeError) as error:
        if not _OUT_OF_RANGE.search(str(error)):
            raise
        return []


def shrunk(program: Program, way: str, found: str) -> tuple[Program, str]:
    """The smallest program that still departs from eager, and how it does. `found` is how the whole program does.

    A smaller program has only one of the outputs, or has the value of a statement as an input instead of the statement.
    """
    while True:
        for smaller in _smaller(program):
            if (departs := wrong(smaller, way)) not in NO_FINDING:
                program, found = smaller, departs
                break
        else:
            return program, found


def _smaller(program: Program) -> Iterator[Program]:
    if program.trains:
        yield replace(program, trains=False)
    if program.split:
        yield from (replace(program, split=split) for split in simpler(program.split))
    for smaller in _parts(program):
        if not program.trains or trainable(smaller):
            yield smaller


def _parts(program: Program) -> Iterator[Program]:
    if len(program.outputs) > 1:
        for output in program.outputs:
            yield replace(program, outputs=(output,)).without_dead_code()
    for i, statement in reversed(list(enumerate(program.statements))):
        if statement.result not in program.outputs:
            yield from _given(program, i)


def _given(program: Program, index: int) -> Iterator[Program]:
    """The program with the value of a statement as an input, which is split in several ways."""
    before: tuple[Statement, ...] = program.statements[: index + 1]
    name = before[-1].result
    upto = replace(program, statements=before, outputs=(name,))
    (value,) = upto.function()(*copy.deepcopy(list(program.inputs.values())))
    inputs = {**program.inputs, name: value}
    rest = (*program.statements[:index], *program.statements[index + 1 :])
    smaller = replace(program, inputs=inputs, statements=rest)
    for split in with_value(program.split, name, value) if program.split else [None]:
        yield replace(smaller, split=split).without_dead_code()


def source(program: Program, way: str) -> str:
    """The program as a script that shows the difference."""
    first: dict[int, str] = {}
    inputs = "\n".join(
        f"{name} = {_literal(value) if first.setdefault(storage_of(value), name) == name else _view(first, value)}"
        for name, value in program.inputs.items()
    )
    return f"""import torch
from torch import inf, nan

from tt_torch.fuzz.meshes import Split
from tt_torch.fuzz.ways import show

{inputs}


{program.source()}

show(program, [{", ".join(program.inputs)}], {way!r}, trains={program.trains}, split={program.split})
"""


def _view(first: Mapping[int, str], value: torch.Tensor) -> str:
    """A tensor in the memory of the first input that has it."""
    return f"{first[storage_of(value)]}.as_strided({(*value.shape,)}, {value.stride()}, {value.storage_offset()})"


def _literal(value: torch.Tensor) -> str:
    """A tensor of these numbers, strides and offset."""
    whole = memory(value)
    made = f"torch.tensor({whole.tolist()!r}, dtype={value.dtype})"
    plain = value.is_contiguous() and whole.shape == value.shape
    return made if plain else f"{made}.as_strided({(*value.shape,)}, {value.stride()}, {value.storage_offset()})"

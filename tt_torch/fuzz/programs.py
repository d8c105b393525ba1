"""Random programs: a few inputs, and statements that use them and each other.

A statement is drawn from a table of texts such as `{x}.add({y}, alpha={s})`. It is kept if eager PyTorch computes it.
So the table says nothing of shapes and dtypes, and whatever eager accepts is tried.
"""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from tt_torch.dynamo.types import Result
from tt_torch.fuzz import meshes
from tt_torch.fuzz.meshes import Split, random_split
from tt_torch.fuzz.quirks import WRITES, undefined
from tt_torch.fuzz.statements import DTYPES, FAMILIES, LARGE_SHAPES, REFUSALS, SCALARS, SHAPES, Families, random_input
from tt_torch.fuzz.tolerance import memory
from tt_torch.fuzz.training import train
from tt_torch.fuzz.views import VIEW_FAMILIES

_SCOPE = {"torch": torch, "inf": float("inf"), "nan": float("nan")}
_LARGEST = 1 << 14  # elements of a value, if no input is larger: programs are to compile and run in a second
_LARGE = 1 / 40  # how many programs have large inputs
_ATTEMPTS = 20  # choices of operands for a statement, until eager PyTorch accepts one
_TRAINING = 0.2  # how many programs are also trained


@dataclass(frozen=True)
class Statement:
    """`result = text`, where the variables `operands` are read."""

    result: str
    text: str
    operands: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    inputs: Mapping[str, torch.Tensor]
    statements: tuple[Statement, ...]
    outputs: tuple[str, ...]
    trains: bool = False  # its inputs of floats are parameters, see training.py
    split: Split | None = None  # its inputs are DTensors

    def source(self) -> str:
        """The program as a Python function of its inputs, which returns a tuple of its outputs."""
        lines = [f"    {s.result} = {s.text}" for s in self.statements]
        # On chips, a result never shares the memory of an input, which the next step of training writes.
        results = ", ".join(f"{name}.clone()" if self.split else name for name in self.outputs)
        return "\n".join([f"def program({', '.join(self.inputs)}):", *lines, f"    return ({results},)", ""])

    def function(self) -> Callable[..., Result]:
        names = _SCOPE | {"in_float16": _InFloat16.apply}
        exec(compile(self.source(), "program.py", "exec"), names)
        return names["program"]  # type: ignore[return-value]

    def in_dtype(self, dtype: torch.dtype) -> Program:
        """The program with `dtype` instead of the dtypes that the device computes in `dtype`: float16 and float64 for
        float32, or these two and float32 for bfloat16. The inputs keep their strides and gaps in memory. A number that
        a statement converts from float32 to float16 is rounded to float16, as on the device."""
        names = {"half()": torch.float16, "double()": torch.float64, "float()": torch.float32}
        if dtype is torch.float32:
            del names["float()"]
        written = re.compile("|".join(map(re.escape, [*names, *map(str, names.values())])))
        inputs = {name: _in_dtype(x, dtype) if x.dtype in names.values() else x for name, x in self.inputs.items()}
        texts = [
            written.sub(lambda found: f"to({dtype})" if found[0] in names else str(dtype), _rounded(s.text, dtype))
            for s in self.statements
        ]
        statements = tuple(replace(s, text=text) for s, text in zip(self.statements, texts, strict=True))
        return replace(self, inputs=inputs, statements=statements)

    @property
    def has_float16(self) -> bool:
        dtypes = [x.dtype for x in self.inputs.values()]
        return torch.float16 in dtypes or any("half()" in s.text or "float16" in s.text for s in self.statements)

    def in_range_of_bf16(self) -> Program:
        """The program without the number 1e-45, which is zero in bfloat16."""
        statements = tuple(replace(s, text=s.text.replace("1e-45", "1e-38")) for s in self.statements)
        return replace(self, statements=statements)

    def without_dead_code(self) -> Program:
        """The program without statements and inputs that its outputs do not need. Writes in place are needed."""
        needed, kept = set(self.outputs), list[Statement]()
        for statement in reversed(self.statements):
            if statement.result in needed or WRITES.search(statement.text):
                needed |= {statement.result, *statement.operands}
                kept.insert(0, statement)
        inputs = {name: value for name, value in self.inputs.items() if name in needed}
        split = self.split and self.split.of(list(inputs))
        return replace(self, inputs=inputs, statements=tuple(kept), split=split)


def generate(seed: int, length: int, on_chips: bool = False, samples: bool = False, views: bool = False) -> Program:
    """The program of a seed, with at most `length` statements. If it is for chips, its inputs are split over a mesh.
    With `samples`, the first statement is a call from PyTorch's database of ops. With `views`, most of the other
    statements make views and write to them."""
    draw = random.Random(seed)
    trains = draw.random() < _TRAINING
    if samples:
        inputs, values, statements = _sampled(draw, trains)
    else:
        large = random.Random(f"large {seed}").random() < _LARGE
        inputs = _random_inputs(draw, meshes.SHAPES if on_chips else LARGE_SHAPES if large else SHAPES)
        if not (trains or on_chips):
            inputs |= _overlapping(random.Random(f"overlap {seed}"), inputs, 1 / 4 if views else 1 / 12)
        values, statements = inputs, []
    for _ in range(length - len(statements)):
        text = _text(draw, VIEW_FAMILIES if views else FAMILIES)
        for _ in range(_ATTEMPTS):
            attempt = [*statements, _statement(draw, text, values, f"v{len(statements)}")]
            if (found := _evaluated(inputs, attempt, trains)) is not None:
                values, statements = found, attempt
                break
    results = [s.result for s in statements] or list(inputs)
    outputs = sorted({results[-1], *draw.sample(results, min(6 if views else 3, len(results)))})
    split = random_split(seed, inputs) if on_chips else None
    program = Program(inputs, tuple(statements), tuple(outputs), split=split).without_dead_code()
    return replace(program, trains=trains and trainable(program))


def _random_inputs(draw: random.Random, shapes: Sequence[Sequence[int]]) -> dict[str, torch.Tensor]:
    inputs: dict[str, torch.Tensor] = {}
    for i in range(draw.randint(1, 4)):
        used = [x.shape for x in inputs.values()]
        inputs[f"x{i}"] = random_input(draw, used if used and draw.random() < 0.5 else shapes)
    return inputs


def _sampled(
    draw: random.Random, trains: bool
) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor], list[Statement]]:
    """Inputs, all values after the first statement, and this statement."""
    from tt_torch.fuzz.samples import random_call  # it needs the packages of the extra `sweeps`

    while True:
        inputs, text = random_call(draw, _SCOPE)
        first = [Statement("v0", text, tuple(inputs))]
        if (values := _evaluated(inputs, first, trains)) is not None:
            return inputs, values, first


def _overlapping(draw: random.Random, inputs: Mapping[str, torch.Tensor], share: float) -> dict[str, torch.Tensor]:
    """A `share` of the programs gets an input that is a part of another input and shares its memory."""
    whole = [x for x in inputs.values() if x.numel() > 1 and x.dtype not in (torch.float16, torch.float64)]
    if not whole or draw.random() > share:
        return {}
    x = draw.choice(whole)
    parts = (x[:1], x[-1], x[..., 1:], x.transpose(0, -1), x.select(draw.randrange(x.dim()), 0), x[:])
    return {f"x{len(inputs)}": draw.choice(parts)}


def trainable(program: Program) -> bool:
    """Whether eager PyTorch computes gradients of the program, and defines its results in the second step, too."""
    inputs, function = list(program.inputs.values()), program.function()
    after = copy.deepcopy(inputs)
    try:
        train(function, copy.deepcopy(inputs), lambda function, _: function)
        train(function, after, lambda function, _: function, steps=1)
        return _is_defined(program, dict(zip(program.inputs, after, strict=True)))
    except REFUSALS:
        return False


def _is_defined(program: Program, values: dict[str, torch.Tensor]) -> bool:
    for each in program.statements:
        if undefined(each.text, [values[name] for name in each.operands]):
            return False
        values[each.result] = eval(each.text, _SCOPE, values)
    return True


def _evaluated(
    inputs: Mapping[str, torch.Tensor], statements: Sequence[Statement], trains: bool
) -> dict[str, torch.Tensor] | None:
    """All values after the statements; None if eager PyTorch refuses the last one, or if its result is no value of a
    program. The inputs stay as they are, because a refused write may have changed its operand."""
    values = copy.deepcopy(dict(inputs))
    for value in values.values():
        value.requires_grad_(trains and value.dtype.is_floating_point)
    largest = max(_LARGEST, *(x.numel() for x in inputs.values()))
    try:
        for each in statements:
            if largest > _LARGEST and _is_larger(each, values, largest):
                return None
            values[each.result] = eval(each.text, _SCOPE, values)
        new = values[statements[-1].result]
        if isinstance(new, torch.Tensor):
            new.view_as(new)  # after a write to its memory, autograd lets nobody read a part that `split` gave
    except REFUSALS:
        return None
    if not isinstance(new, torch.Tensor) or new.numel() > largest or new.dtype not in DTYPES:
        return None
    operands = [values[name] for name in statements[-1].operands]
    kept = _as_float32(new, inputs, statements) and not undefined(statements[-1].text, operands)
    return values if kept else None


def _is_larger(statement: Statement, values: Mapping[str, torch.Tensor], most: int) -> bool:
    """Whether the result has more elements than `most`. It is not computed, as it may not fit into memory."""
    try:
        new = eval(statement.text, _SCOPE, {name: x.to("meta") for name, x in values.items()})
    except (*REFUSALS, AssertionError):  # a decomposition, which gives the shape, asserts what a kernel checks
        return False  # its shape depends on values, or eager PyTorch refuses it, too
    return isinstance(new, torch.Tensor) and new.numel() > most


def _as_float32(value: torch.Tensor, inputs: Mapping[str, torch.Tensor], statements: Sequence[Statement]) -> bool:
    """Whether float32 has the value too: float16 and float64 are computed in it, so their own limits are not kept.
    float16 overflows where float32 does not, and has infinities and NaN then."""
    if value.dtype == torch.float16:
        wide = Program(dict(inputs), tuple(statements), (statements[-1].result,)).in_dtype(torch.float32)
        try:
            (other,) = wide.function()(*copy.deepcopy(list(wide.inputs.values())))
        except REFUSALS:
            return False
        return other.shape == value.shape and torch.equal(other.isfinite(), value.isfinite())
    rounded = value.float()
    same = torch.equal(value.isfinite(), rounded.isfinite()) and torch.equal(value == 0, rounded == 0)
    return value.dtype != torch.float64 or same


class _InFloat16(torch.autograd.Function):
    """Rounds to float16 without a conversion, so that the gradient is not rounded."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float16).to(torch.float32)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


def _rounded(text: str, dtype: torch.dtype) -> str:
    """A statement that converts to float16, such as `x.prod(0, dtype=torch.float16)`, with a rounding to float16 first.
    On the way to bfloat16, the device does not round to float16."""
    if dtype is not torch.float32:
        return text
    return re.sub(r"^(?!torch\.)(\w+)(?=\.half\(\)|\.\w+\(.*dtype=torch\.float16\))", r"in_float16(\1)", text)


def _in_dtype(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return memory(x).to(dtype).as_strided(x.shape, x.stride(), x.storage_offset())


def _text(draw: random.Random, families: Families) -> str:
    chosen = list(families.values())
    _, texts = draw.choices(chosen, weights=[weight for weight, _ in chosen])[0]
    return draw.choice(texts)


def _statement(draw: random.Random, text: str, values: Mapping[str, torch.Tensor], result: str) -> Statement:
    """`text` with random operands among `values`."""
    operands: list[str] = []

    def variable(accepts: Callable[[torch.Tensor], bool]) -> str:
        found = [name for name, value in values.items() if accepts(value)] or list(values)
        operands.append(draw.choice(found))
        return operands[-1]

    chosen = {name: variable(lambda _: True) for name in "xyz"}
    makers: dict[str, Callable[[], str]] = {
        **{name: lambda name=name: chosen[name] for name in "xyz"},  # type: ignore[misc]
        "i": lambda: variable(lambda v: v.dtype in (torch.int64, torch.int32)),
        "m": lambda: variable(lambda v: v.dtype == torch.bool),
        "s": lambda: repr(draw.choice(SCALARS)),
        "d": lambda: str(draw.randint(-3, 2)),
        "e": lambda: str(draw.randint(-3, 2)),
        "n": lambda: str(draw.randint(0, 4)),
        "t": lambda: str(draw.choice(DTYPES)),
    }
    text = re.sub(r"\{(\w)\}", lambda found: makers[found[1]](), text)
    return Statement(result, text, tuple(name for name in dict.fromkeys(operands) if re.search(rf"\b{name}\b", text)))

"""Random programs: a few inputs, and statements that use them and each other.

A statement is drawn from a table of texts such as `{x}.add({y}, alpha={s})`. It is kept if eager PyTorch computes it.
So the table says nothing of shapes and dtypes, and whatever eager accepts is tried.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from tt_torch.dynamo.types import Result

# {x}, {y}, {z}: variables; {i}: one of integers; {m}: one of booleans; {s}: a number; {d}, {e}: dimensions;
# {n}: a small size; {t}: a dtype.
_ELEMENTWISE = """
{x} + {y} | {x} - {y} | {x} * {y} | {x} / {y} | {x} // {y} | {x} % {y} | {x} ** {y} | {x} + {s} | {x} - {s}
{s} - {x} | {x} * {s} | {x} / {s} | {s} / {x} | {x} // {s} | {x} % {s} | {x} ** 2 | {x} ** {s} | {s} ** {x}
{x} & {y} | {x} | {y} | {x} ^ {y} | {x} & {s} | {x} ^ {s} | {x} << {y} | {x} >> {y} | {x} << {s} | {x} >> {s} | ~{x}
-{x} | {x}.abs() | {x} == {y} | {x} < {y} | {x} != {s} | {x} >= {s} | {x} == {s} | {x} < {s} | {x}.add({y}, alpha={s})
{x}.sub({y}, alpha={s}) | torch.rsub({x}, {y}) | {x}.clamp({s}, {s}) | {x}.clamp(max={s}) | {x}.clamp(min={y})
{x}.relu() | {x}.sigmoid() | {x}.tanh() | {x}.exp() | {x}.log() | {x}.sqrt() | {x}.rsqrt() | {x}.sin() | {x}.erf()
{x}.floor() | {x}.round() | {x}.trunc() | {x}.sign() | {x}.signbit() | {x}.isnan() | {x}.isinf() | {x}.logical_not()
{x}.logical_xor({y}) | torch.where({m}, {x}, {y}) | torch.where({x} < {s}, {x}, {s}) | torch.minimum({x}, {y})
torch.maximum({x}, {y}) | torch.fmod({x}, {y}) | torch.fmod({x}, {s}) | torch.remainder({s}, {x}) | {x}.to({t})
{x}.float() | {x}.long() | {x}.bool() | {x}.int() | torch.lerp({x}, {y}, {s})
torch.addcmul({x}, {y}, {z}, value={s}) | torch.nn.functional.gelu({x}) | torch.nn.functional.threshold({x}, {s}, {s})
torch.nn.functional.softplus({x}) | {x}.masked_fill({m}, {s}) | torch.nan_to_num({x}) | torch.heaviside({x}, {y})
torch.copysign({x}, {y}) | {x}.square() | torch.div({x}, {y}, rounding_mode='floor')
torch.div({x}, {s}, rounding_mode='trunc') | torch.floor_divide({x}, {y})
"""
_SHAPES = """
{x}.unsqueeze({d}) | {x}.squeeze() | {x}.flatten() | {x}.transpose({d}, {e}) | {x}.flip({d}) | {x}.roll({n}, {d})
{x}[0] | {x}[..., 0] | {x}[..., -1:] | {x}[1:] | {x}[..., ::2] | {x}[None] | {x}.narrow({d}, 0, {n})
{x}.select({d}, {n}) | torch.cat([{x}, {y}], {d}) | torch.stack([{x}, {x}], {d}) | {x}.expand({n}, *{x}.shape)
{x}.repeat({n}, *[1] * {x}.dim()) | {x}.reshape(-1) | {x}.split({n}, {d})[0] | {x}.chunk(2, {d})[-1]
torch.nn.functional.pad({x}, (1, {n})) | {x}.mT | {x}.contiguous() | {x}.clone() | {x}.diagonal() | {x}.tril()
{x}.triu({n}) | {x}.unfold({d}, {n}, 1) | {x}.movedim({d}, {e}) | torch.zeros_like({x})
torch.ones_like({x}, dtype={t}) | torch.full_like({x}, {s}) | torch.arange({n}, device={x}.device) + {x}
"""
_REDUCTIONS = """
{x}.sum() | {x}.sum({d}) | {x}.sum({d}, dtype={t}) | {x}.mean({d}) | {x}.amax({d}) | {x}.amin({d}, True)
{x}.max({d})[0] | {x}.prod({d}) | {x}.any({d}) | {x}.all() | {x}.all({d}) | {x}.argmax({d}) | {x}.argmin()
{x}.var({d}) | {x}.std() | {x}.cumsum({d}) | {x}.cumprod({d}) | {x}.cummax({d})[0] | {x}.sort({d})[0]
{x}.softmax({d}) | {x}.log_softmax({d}) | {x}.logsumexp({d}) | {x}.norm() | {x}.count_nonzero()
{x}.topk({n}, {d})[0] | {x}.sort({d}, stable=True)[1] | {x}.nansum({d}) | torch.linalg.vector_norm({x}, 1, {d})
{x}.aminmax(dim={d})[1] | {x}.median() | {x}.diff(dim={d})
"""
_INDEXING = """
{x}.gather({d}, {i}) | {x}.index_select({d}, {i}.flatten()) | {x}[{i}] | {x}[{m}.flatten()[0].long()] | {x}.take({i})
{x}.scatter({d}, {i}, {y}) | {x}.scatter_add({d}, {i}, {y}) | {x}.index_fill({d}, {i}.flatten(), {s})
{x}.index_put(({i},), {y}) | {x}.index_put(({i},), {y}, accumulate=True) | {x}.index_add({d}, {i}.flatten(), {y})
torch.nn.functional.one_hot({i}) | torch.bucketize({x}, {y}.flatten().sort()[0]) | {x}.masked_scatter({m}, {y})
torch.searchsorted({x}.flatten().sort()[0], {y}) | {x}.scatter({d}, {i}, {s}) | torch.isin({x}, {y})
"""
_PRODUCTS = """
{x} @ {y} | {x} @ {x}.mT | torch.mm({x}, {y}) | torch.outer({x}.flatten(), {y}.flatten())
torch.dot({x}.flatten(), {x}.flatten()) | torch.nn.functional.linear({x}, {y})
torch.baddbmm({x}, {y}, {z}, beta={s}) | torch.nn.functional.layer_norm({x}, {x}.shape[-1:])
"""
_WRITES = """
{x}.add_({y}) | {x}.mul_({s}) | {x}.zero_() | {x}.fill_({s}) | {x}.copy_({y}) | {x}[..., 0].add_({y})
{x}.clamp_({s}, {s}) | {x}.masked_fill_({m}, {s}) | {x}.sub_({s}) | {x}.flatten().add_(1) | {x}.t_().neg_()
{x}[0].copy_({y}) | {x}.relu_() | {x}.index_put_(({i},), {y}) | {x}.scatter_({d}, {i}, {y})
{x}.transpose(0, -1).mul_({y}) | {x}.cumsum_({d}) | {x}.logical_not_()
"""


def _texts(table: str) -> list[str]:
    """Entries are separated by " | ", except the operator of that form, which has its operands beside it."""
    joined = " | ".join(table.strip().splitlines()).replace("{x} | {y}", "{x} OR {y}")
    return [text.strip().replace(" OR ", " | ") for text in joined.split(" | ")]


FAMILIES = {
    "elementwise": (6, _texts(_ELEMENTWISE)),
    "shapes": (3, _texts(_SHAPES)),
    "reductions": (3, _texts(_REDUCTIONS)),
    "indexing": (2, _texts(_INDEXING)),
    "products": (1, _texts(_PRODUCTS)),
    "writes": (2, _texts(_WRITES)),
}
DTYPES = (
    torch.float32, torch.float32, torch.float32, torch.bfloat16, torch.int64, torch.int64, torch.int32, torch.bool,
    torch.uint8, torch.int16, torch.int8,
)  # fmt: skip
SHAPES = ((), (1,), (5,), (3, 5), (3, 1), (5, 5), (2, 3, 5), (2, 1, 5), (33,), (1, 64), (0, 5), (0,), (2, 3, 4, 5))
SCALARS = (
    0, 1, -1, 2, 3, 7, -5, 31, 33, 127, 128, 255, -128, 2**15, 2**16, 2**24 + 1, 2**31 - 1, -(2**31), 2**31, 2**40,
    10**10, True, False, 0.5, -0.5, 1.5, -2.0, 0.0, -0.0, 1e-3, 3.7, 1e10, float("inf"), float("-inf"), float("nan"),
)  # fmt: skip
_LARGEST = 4096  # elements of a value: programs are to compile and run in a second
# The errors by which eager PyTorch refuses operands and numbers. Another one would be a fault of the table.
_REFUSALS = (
    RuntimeError, IndexError, ValueError, TypeError, NotImplementedError, OverflowError, ZeroDivisionError,
)  # fmt: skip


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

    def source(self) -> str:
        """The program as a Python function of its inputs, which returns a tuple of its outputs."""
        lines = [f"    {s.result} = {s.text}" for s in self.statements]
        results = ", ".join(self.outputs)
        return "\n".join([f"def program({', '.join(self.inputs)}):", *lines, f"    return ({results},)", ""])

    def function(self) -> Callable[..., Result]:
        names = {"torch": torch, "inf": float("inf"), "nan": float("nan")}
        exec(compile(self.source(), "program.py", "exec"), names)
        return names["program"]  # type: ignore[return-value]

    def without_dead_code(self) -> Program:
        """The program without statements and inputs that its outputs do not need. Writes in place are needed."""
        needed, kept = set(self.outputs), list[Statement]()
        for statement in reversed(self.statements):
            if statement.result in needed or re.search(r"\w_\(", statement.text):
                needed |= {statement.result, *statement.operands}
                kept.insert(0, statement)
        inputs = {name: value for name, value in self.inputs.items() if name in needed}
        return replace(self, inputs=inputs, statements=tuple(kept))


def generate(seed: int, length: int) -> Program:
    """The program of a seed, with at most `length` statements."""
    draw = random.Random(seed)
    inputs = {f"x{i}": _input(draw) for i in range(draw.randint(1, 4))}
    values: Mapping[str, torch.Tensor] = inputs
    statements: list[Statement] = []
    for _ in range(20 * length):
        if len(statements) == length:
            break
        attempt = [*statements, _statement(draw, values, f"v{len(statements)}")]
        if (found := _evaluated(inputs, attempt)) is not None:
            values, statements = found, attempt
    results = [s.result for s in statements] or list(inputs)
    outputs = sorted({results[-1], *draw.sample(results, min(3, len(results)))})
    return Program(inputs, tuple(statements), tuple(outputs)).without_dead_code()


def _evaluated(inputs: Mapping[str, torch.Tensor], statements: Sequence[Statement]) -> dict[str, torch.Tensor] | None:
    """All values after the statements; None if eager PyTorch refuses the last one, or if its result is no value of a
    program. The inputs stay as they are, because a refused write may have changed its operand."""
    values = {name: value.clone() for name, value in inputs.items()}
    scope = {"torch": torch, "inf": float("inf"), "nan": float("nan")}
    try:
        for each in statements:
            values[each.result] = eval(each.text, scope, values)
    except _REFUSALS:
        return None
    new = values[statements[-1].result]
    if not isinstance(new, torch.Tensor) or new.numel() > _LARGEST or new.dtype not in DTYPES:
        return None
    return values


def _statement(draw: random.Random, values: Mapping[str, torch.Tensor], result: str) -> Statement:
    families = list(FAMILIES.values())
    _, texts = draw.choices(families, weights=[weight for weight, _ in families])[0]
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
    text = re.sub(r"\{(\w)\}", lambda found: makers[found[1]](), draw.choice(texts))
    return Statement(result, text, tuple(name for name in dict.fromkeys(operands) if re.search(rf"\b{name}\b", text)))


def _input(draw: random.Random) -> torch.Tensor:
    shape, dtype = draw.choice(SHAPES), draw.choice(DTYPES)
    generator = torch.Generator().manual_seed(draw.randrange(1 << 30))
    if dtype.is_floating_point:
        value = torch.randn(shape, generator=generator) * draw.choice((1, 1, 10, 1000))
        special = torch.tensor([float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1e-40, 3e38, 0.5, 2.5])
    else:
        value = torch.randint(-4, 5, shape, generator=generator)
        bound = torch.iinfo(dtype if dtype != torch.bool else torch.uint8)
        special = torch.tensor([bound.min, bound.max, 0, 1, -1, 127])
    if draw.random() < 0.3:
        mask = torch.rand(shape, generator=generator) < 0.2
        value = torch.where(mask, special[torch.randint(len(special), shape, generator=generator)], value)
    return value.to(dtype)

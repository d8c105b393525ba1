"""Random StableHLO programs of one op: a convolution, a sort, a scatter, a gather or a select_and_scatter."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import torch

DTYPES = {"i64": torch.int64, "ui64": torch.uint64, "i32": torch.int32, "f32": torch.float32}
Type: TypeAlias = tuple[Sequence[int], str]  # shape and element type
FLOATS = [0.0, -0.0, float("inf"), -float("inf"), 1.5, -2.0]


@dataclass(frozen=True)
class Program:
    """`types` are those of the inputs. The text for the interpreter means the same, if it must be another one."""

    text: str
    types: Sequence[Type]
    for_interpreter: str

    def inputs(self, rng: random.Random, size: int) -> list[torch.Tensor]:
        """Integers up to a size; small ones often, so that some are equal."""
        return [_drawn(rng, shape, kind, size) for shape, kind in self.types]


def _drawn(rng: random.Random, shape: Sequence[int], kind: str, size: int) -> torch.Tensor:
    count = torch.Size(shape).numel()
    if kind == "f32":
        return torch.tensor([rng.choice(FLOATS) for _ in range(count)]).reshape(tuple(shape))
    limits = (0, 2**64 - 1) if kind == "ui64" else (-(2**31), 2**31 - 1) if kind == "i32" else (-(2**63), 2**63 - 1)
    low, high = max(limits[0], -size), min(limits[1], size)
    numbers = [rng.randint(low, high) if rng.random() < 0.6 else rng.randint(0, 2) for _ in range(count)]
    return torch.tensor(numbers, dtype=DTYPES[kind]).reshape(tuple(shape))


def _tensor(shape: Sequence[int], kind: str) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{kind}>"


def _program(op: str, types: Sequence[Type], results: Sequence[Type], zeros: Sequence[Type] = ()) -> Program:
    """The program of one op, whose text lacks the operands and the types. Its last operands are zeros."""
    names = [*(f"%x{i}" for i in range(len(types))), *(f"%z{i}" for i in range(len(zeros)))]
    kinds = [_tensor(*each) for each in (*types, *zeros)]
    given = ", ".join(f"{name}: {kind}" for name, kind in zip(names, kinds, strict=True) if name[1] == "x")
    before = [
        f"%z{i} = stablehlo.constant dense<{0.0 if each[1] == 'f32' else 0}> : {_tensor(*each)}"
        for i, each in enumerate(zeros)
    ]
    made = ", ".join(_tensor(*each) for each in results)
    returned = ", ".join(f"%r#{i}" for i in range(len(results)))
    head, tail = op.split("()", 1)
    call = f"%r:{len(results)} = {head}({', '.join(names)}){tail} : ({', '.join(kinds)}) -> ({made})"
    inside = "\n".join([*before, call, f"return {returned} : {made}"])
    text = f"func.func @main({given}) -> ({made}) {{\n{inside}\n}}"
    return Program(text, types, text)


def convolution(rng: random.Random) -> Program:
    """The interpreter has an error for results whose dimensions are in another order than usual."""
    kind, rank = rng.choice(["i64", "ui64"]), rng.randint(0, 2)
    groups, batches = rng.choice([(1, 1), (1, 1), (2, 1), (1, 2)])
    batch, features = batches * rng.randint(1, 2), groups * rng.randint(1, 2)
    made = groups * batches * rng.randint(1, 2)
    kernel = [rng.randint(1, 3) for _ in range(rank)]
    steps, base, dilations = ([rng.randint(1, 2) for _ in range(rank)] for _ in range(3))
    pads = [[rng.randint(0, 2), rng.randint(0, 2)] for _ in range(rank)]
    spans = [(n - 1) * d + 1 for n, d in zip(kernel, dilations, strict=True)]
    sizes = [rng.randint(2, 4) + span for span in spans]
    wide = [(n - 1) * b + 1 + sum(p) for n, b, p in zip(sizes, base, pads, strict=True)]
    out = [(n - span) // step + 1 for n, span, step in zip(wide, spans, steps, strict=True)]
    usual = ["b", "f", *map(str, range(rank))]
    letters = [rng.sample([*names, *map(str, range(rank))], 2 + rank) for names in ("bf", "io", "bf")]
    shapes = [{"b": batch, "f": features}, {"i": features // groups, "o": made}, {"b": batch // batches, "f": made}]
    for shape, more in zip(shapes, (sizes, kernel, out), strict=True):
        shape.update({str(i): n for i, n in enumerate(more)})
    x, w, y = ([shape[c] for c in order] for shape, order in zip(shapes, letters, strict=True))
    turned = [str(rng.random() < 0.3).lower() for _ in range(rank)]
    window = f"stride = {steps}, pad = {pads}, lhs_dilate = {base}, rhs_dilate = {dilations}, "
    options = f"batch_group_count = {batches} : i64, feature_group_count = {groups} : i64"
    names = [f"[{', '.join(order)}]" for order in (*letters, usual)]
    head = f"stablehlo.convolution() dim_numbers = {names[0]}x{names[1]}->"
    tail = f", window = {{{window}reverse = [{', '.join(turned)}]}} {{{options}}}"
    program = _program(head + names[2] + tail, [(x, kind), (w, kind)], [(y, kind)])
    straight = [(shapes[2])[c] for c in usual]
    other = _program(head + names[3] + tail, [(x, kind), (w, kind)], [(straight, kind)])
    moved = f"%t = stablehlo.transpose %r#0, dims = {[usual.index(c) for c in letters[2]]} : "
    moved += f"({_tensor(straight, kind)}) -> {_tensor(y, kind)}\nreturn %t : {_tensor(y, kind)}\n}}"
    old, new = (f"-> ({_tensor(shape, kind)}) {{" for shape in (straight, y))
    return Program(program.text, program.types, other.text.rpartition("return")[0].replace(old, new) + moved)


def sort(rng: random.Random) -> Program:
    """By one to three keys, each of which may be descending."""
    shape, count = [rng.randint(1, 3), rng.randint(2, 6)], rng.randint(1, 4)
    types = [(shape, rng.choice(["i64", "ui64", "i64", "i32", "f32"])) for _ in range(count)]
    types[0] = (shape, rng.choice(["i64", "ui64"]))
    keys = rng.sample(range(count), min(count, rng.randint(1, 3)))
    arguments = ", ".join(f"%a{i}: tensor<{k}>, %b{i}: tensor<{k}>" for i, (_, k) in enumerate(types))
    lines, last = [], ""
    for i in reversed(keys):
        kinds = f"(tensor<{types[i][1]}>, tensor<{types[i][1]}>) -> tensor<i1>"
        lines.append(f"%l{i} = stablehlo.compare {rng.choice(['LT', 'GT'])}, %a{i}, %b{i} : {kinds}")
        if last:
            lines.append(f"%e{i} = stablehlo.compare EQ, %a{i}, %b{i} : {kinds}")
            lines.append(f"%t{i} = stablehlo.and %e{i}, {last} : tensor<i1>")
            lines.append(f"%o{i} = stablehlo.or %l{i}, %t{i} : tensor<i1>")
        last = f"%o{i}" if last else f"%l{i}"
    body = "\n".join([f"^bb0({arguments}):", *lines, f"stablehlo.return {last} : tensor<i1>"])
    dim = rng.randrange(2)
    op = f'"stablehlo.sort"() <{{dimension = {dim} : i64, is_stable = true}}> ({{\n{body}\n}})'
    return _program(op, types, types)


def select_and_scatter(rng: random.Random, least: int = 1) -> Program:
    """`least` is the smallest number of elements of a window."""
    kind, rank = rng.choice(["i64", "ui64", *(["i32", "f32"] if least > 1 else [])]), rng.randint(1, 3)
    size = math.ceil(least ** (1 / rank))
    sizes = [rng.randint(size, size + 2) for _ in range(rank)]
    steps = [rng.randint(1, 3) for _ in range(rank)]
    shape = [rng.randint(2, 4) + n for n in sizes]
    pads = [[rng.randint(0, n - 1)] * 2 if rng.random() < 0.5 else [0, rng.randint(0, n - 1)] for n in sizes]
    source = [(n + sum(p) - w) // s + 1 for n, p, w, s in zip(shape, pads, sizes, steps, strict=True)]
    s, select, scatter = f"tensor<{kind}>", rng.choice(["GE", "GE", "LE", "GT"]), rng.choice(["add", "add", "maximum"])
    bodies = (
        f"{{\n^bb0(%a: {s}, %b: {s}):\n%c = stablehlo.compare {select}, %a, %b : ({s}, {s}) -> tensor<i1>\n"
        f"stablehlo.return %c : tensor<i1>\n}}, {{\n^bb0(%a: {s}, %b: {s}):\n"
        f"%c = stablehlo.{scatter} %a, %b : {s}\nstablehlo.return %c : {s}\n}}"
    )
    window, strides = (f"array<i64: {', '.join(map(str, each))}>" for each in (sizes, steps))
    options = (
        f"window_dimensions = {window}, window_strides = {strides}, padding = dense<{pads}> : tensor<{rank}x2xi64>"
    )
    op = f'"stablehlo.select_and_scatter"() <{{{options}}}> ({bodies})'
    return _program(op, [(shape, kind), (source, kind)], [(shape, kind)], [([], kind)])


@dataclass(frozen=True)
class Windows:
    """Windows in a tensor: one for each index vector, in a tensor of index vectors of the shape `outer`."""

    shape: Sequence[int]  # of the tensor
    sizes: Sequence[int]  # of a window
    moving: Sequence[int]  # the dimensions along which indices move the window
    gone: Sequence[int]  # the dimensions that a window lacks
    batch: Sequence[int]  # the batching dimensions of the tensor
    of_batch: Sequence[int]  # the dimensions of `outer` that belong to them
    outer: Sequence[int]

    @classmethod
    def drawn(cls, rng: random.Random) -> Windows:
        shape = [rng.randint(2, 4) for _ in range(rng.randint(1, 3))]
        dims = rng.sample(range(len(shape)), len(shape))
        batch = [dims.pop()] if len(shape) > 1 and rng.random() < 0.25 else []
        moving = dims[: rng.randint(1, len(dims))]
        gone = sorted(d for d in dims if rng.random() < 0.5)
        sizes = [1 if d in (*gone, *batch) else rng.randint(1, n) for d, n in enumerate(shape)]
        outer = [rng.randint(1, 3) for _ in range(rng.randint(0, 2))]
        of_batch = [rng.randint(0, len(outer))] if batch else []
        for place in of_batch:
            outer.insert(place, shape[batch[0]])
        return cls(shape, sizes, moving, gone, batch, of_batch, outer)

    def all_sizes(self, rng: random.Random) -> tuple[list[int], list[int]]:
        """The shape of all windows together, and the dimensions in it that are those of a window."""
        inner = [n for d, n in enumerate(self.sizes) if d not in (*self.gone, *self.batch)]
        dims = sorted(rng.sample(range(len(self.outer) + len(inner)), len(inner)))
        left, right = iter(self.outer), iter(inner)
        return [next(right if d in dims else left) for d in range(len(self.outer) + len(inner))], dims

    def indices(self, starts: Sequence[Sequence[int]], vector: int) -> np.ndarray:
        return np.moveaxis(np.array(starts, np.int64).reshape(*self.outer, len(self.moving)), -1, vector)


def scatter(rng: random.Random) -> Program:
    """A scatter has one to three operands, and its body has several ops. It writes no element twice, because the
    specification leaves the order of writes open."""
    drawn = Windows.drawn(rng)
    starts, vector = _starts(rng, drawn), rng.randint(0, len(drawn.outer))
    updates, dims = drawn.all_sizes(rng)
    kinds = [rng.choice(["i32", "i64", "f32"]) for _ in range(rng.randint(1, 3))]
    numbers = (
        f"update_window_dims = {dims}, inserted_window_dims = {drawn.gone}, input_batching_dims = {drawn.batch}, "
        f"scatter_indices_batching_dims = {[d + (vector <= d) for d in drawn.of_batch]}, "
        f"scatter_dims_to_operand_dims = {drawn.moving}, index_vector_dim = {vector}"
    )
    options = f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>, unique_indices = true"
    return _scatter_of(kinds, drawn.shape, updates, drawn.indices(starts, vector), options, _scalars(rng, kinds))


def gather(rng: random.Random) -> Program:
    """Windows may begin anywhere, and are moved inside."""
    drawn = Windows.drawn(rng)
    starts = [[rng.randint(-2, 5) for _ in drawn.moving] for _ in np.ndindex(*drawn.outer)]
    vector, kind = rng.randint(0, len(drawn.outer)), rng.choice(["i32", "i64", "f32"])
    result, dims = drawn.all_sizes(rng)
    numbers = (
        f"offset_dims = {dims}, collapsed_slice_dims = {drawn.gone}, operand_batching_dims = {drawn.batch}, "
        f"start_indices_batching_dims = {[d + (vector <= d) for d in drawn.of_batch]}, "
        f"start_index_map = {drawn.moving}, index_vector_dim = {vector}"
    )
    indices = drawn.indices(starts, vector)
    x, of_indices, made = _tensor(drawn.shape, kind), _tensor(indices.shape, "i64"), _tensor(result, kind)
    text = f"""func.func @main(%x: {x}) -> {made} {{
%i = stablehlo.constant dense<{indices.tolist()}> : {of_indices}
%r = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<{numbers}>,
  slice_sizes = array<i64: {", ".join(map(str, drawn.sizes))}>}}> : ({x}, {of_indices}) -> {made}
return %r : {made}
}}"""
    return Program(text, [(drawn.shape, kind)], text)


def _starts(rng: random.Random, drawn: Windows) -> list[list[int]]:
    """Where the windows start. Windows that would write an element again are outside."""
    written, made = np.zeros(drawn.shape, bool), []
    forms = list(zip(drawn.shape, drawn.sizes, strict=True))
    for place in np.ndindex(*drawn.outer):
        ends = [(-1, n) if rng.random() < 0.2 else (0, n - size) for n, size in forms]
        start = [rng.randint(*each) for each in ends]
        for d in range(len(start)):
            at_batch = place[drawn.of_batch[0]] if d in drawn.batch else 0
            start[d] = start[d] if d in drawn.moving else at_batch
        window = tuple(slice(first, first + size) for first, (_, size) in zip(start, forms, strict=True))
        inside = all(0 <= first <= n - size for first, (n, size) in zip(start, forms, strict=True))
        if not inside or written[window].any():
            start = [-5] * len(start)
        else:
            written[window] = True
        made.append([start[d] for d in drawn.moving])
    return made


def _scalars(rng: random.Random, kinds: Sequence[str]) -> str:
    """The ops of a body, and its return."""
    values = [(f"%a{i}", kind) for i, kind in enumerate(kinds)] + [(f"%u{i}", kind) for i, kind in enumerate(kinds)]
    lines: list[str] = []

    def add(op: str, kind: str, types: str = "") -> str:
        lines.append(f"%b{len(lines)} = stablehlo.{op} : {types or f'tensor<{kind}>'}")
        values.append((f"%b{len(lines) - 1}", kind))
        return values[-1][0]

    for _ in range(rng.randint(0, 4)):
        (x, kind), (y, other) = rng.sample(values, 2)
        if kind != other and "f32" not in (kind, other):
            y = add(f"convert {y}", kind, f"(tensor<{other}>) -> tensor<{kind}>")
        elif kind != other:
            y = add("constant dense<3>" if kind != "f32" else "constant dense<0.5>", kind)
        ops = ["add", "subtract", "multiply", "maximum", "minimum", "negate", "less"]
        op = rng.choice(ops)
        if op == "less":
            test = add(f"compare LT, {x}, {y}", "i1", f"(tensor<{kind}>, tensor<{kind}>) -> tensor<i1>")
            values.pop()
            add(f"select {test}, {y}, {x}", kind, f"tensor<i1>, tensor<{kind}>")
        else:
            add(f"{op} {x}" if op == "negate" else f"{op} {x}, {y}", kind)
    chosen = [rng.choice([x for x, own in values if own == kind]) for kind in kinds]
    return "\n".join([*lines, f"stablehlo.return {', '.join(chosen)} : {', '.join(f'tensor<{k}>' for k in kinds)}"])


def _scatter_of(
    kinds: Sequence[str], shape: Sequence[int], updates: Sequence[int], indices: np.ndarray, options: str, body: str
) -> Program:
    count, of_indices = len(kinds), _tensor(indices.shape, "i64")
    types = [*((shape, kind) for kind in kinds), *((updates, kind) for kind in kinds)]
    names = [f"%x{i}" for i in range(2 * count)]
    texts = [_tensor(*each) for each in types]
    given = ", ".join(f"{name}: {text}" for name, text in zip(names, texts, strict=True))
    arguments = ", ".join(f"%{letter}{i}: tensor<{kind}>" for letter in "au" for i, kind in enumerate(kinds))
    made, operands = ", ".join(texts[:count]), ", ".join([*names[:count], "%i", *names[count:]])
    text = f"""func.func @main({given}) -> ({made}) {{
%i = stablehlo.constant dense<{indices.tolist()}> : {of_indices}
%r:{count} = "stablehlo.scatter"({operands}) ({{
^bb0({arguments}):
{body}
}}) {{{options}}} : ({", ".join([*texts[:count], of_indices, *texts[count:]])}) -> ({made})
return {", ".join(f"%r#{i}" for i in range(count))} : {made}
}}"""
    return Program(text, types, text)


KINDS: dict[str, Callable[[random.Random], Program]] = {
    "convolution": convolution, "sort": sort, "select_and_scatter": select_and_scatter, "scatter": scatter,
    "gather": gather, "large windows": partial(select_and_scatter, least=129),
}  # fmt: skip

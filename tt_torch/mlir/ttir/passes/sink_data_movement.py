"""Moves permutes and reshapes towards their users, where they meet their inverses and cancel.

Each convolution has conversions between NCHW and flattened NHWC around it. The ops between two convolutions are
element-wise, so these conversions can move through them. A movement only moves past a value with one reader, so that no
op is duplicated. A reshape also stays where it is if it makes a value much smaller: each dimension of one row or one
column is a whole tile in memory, and the ops behind the reshape would compute all of it.
"""

from __future__ import annotations

import math

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, RuleSet, producer, shape, single_use
from tt_torch.mlir.ttir import dialect
from tt_torch.mlir.ttir.constness import is_constant
from tt_torch.mlir.types import Op, Value
from tt_torch.wire.facts import physical_bytes

RULES = RuleSet("sink-data-movement")
OTHER_UNARY = ["gelu_tanh", "leaky_relu", "clamp_scalar", "typecast"]
UNARY = [f"ttir.{n}" for n in [*dialect.UNARY, *dialect.UNARY_PREDICATES, *OTHER_UNARY]]
BINARY = [f"ttir.{n}" for n in [*dialect.BINARY, *dialect.COMPARISONS, *dialect.LOGICAL]]
MOVES = ("ttir.permute", "ttir.reshape")
# A value may grow in memory by this factor at most to save one op.
MOST_GROWTH = 2


def movement(value: Value) -> Op | None:
    """The permute or reshape that makes `value`, if `value` has only one reader and no op should stay behind it."""
    op = producer(value, *MOVES)
    return op if op is not None and single_use(value) and _may_sink(op) else None


def _may_sink(move: Op) -> bool:
    source, result = shape(move.operands[0]), shape(move.results[0])
    return move.name == "ttir.permute" or not _grows(result, source)


def _grows(before: list[int], after: list[int]) -> bool:
    """Whether a value of the second shape takes much more memory than one of the first, both in tiles."""
    small, large = (physical_bytes("Float32", True, sizes) for sizes in (before, after))
    return large > MOST_GROWTH * small


def again(b: Builder, move: Op, x: Value, result: Value) -> Value:
    """The same movement on `x`, to the shape of `result`."""
    if move.name == "ttir.permute":
        return b("ttir.permute", x, permutation=ods.attr(move, "permutation"))
    return b("ttir.reshape", x, shape=shape(result))


@RULES.rewrites(*UNARY)
def through_unary(op: Op, b: Builder) -> Value | None:
    move = movement(op.operands[0])
    if move is None or is_constant(op.operands[0]):
        return None
    inner = b(op.operation.name, move.operands[0], **ods.attrs_of(op))
    return again(b, move, inner, op.results[0])


@RULES.rewrites(*BINARY)
def through_binary(op: Op, b: Builder) -> Value | None:
    result = op.results[0]
    for i in (0, 1):
        moved, other = op.operands[i], op.operands[1 - i]
        move = movement(moved)
        if move is None or shape(moved) != shape(result) or is_constant(moved):
            continue
        source = move.operands[0]
        other = _moved_back(b, move, other, shape(source))
        if other is None:
            continue
        pair = (source, other) if i == 0 else (other, source)
        return again(b, move, b(op.operation.name, *pair), result)
    return None


def _moved_back(b: Builder, move: Op, other: Value, source: list[int]) -> Value | None:
    """`other` in the form of the operand before its movement: by the inverse movement, or by a broadcast."""
    twin = movement(other)
    if twin is not None and twin.name == move.name and shape(twin.operands[0]) == source:
        same = ods.attr(twin, "permutation") == ods.attr(move, "permutation")  # None for reshapes
        return twin.operands[0] if same else None
    sizes = shape(other)
    if not is_constant(other) and math.prod(sizes) == math.prod(source):
        return None  # another movement of the same size gains nothing, and the rule could undo it without end
    if math.prod(sizes) == 1:
        return b("ttir.reshape", other, shape=[1] * len(source))
    target = shape(move.results[0])
    sizes = [1] * (len(target) - len(sizes)) + sizes
    if move.name == "ttir.permute":
        permutation = ods.attr(move, "permutation")
        inverse = [permutation.index(d) for d in range(len(permutation))]
        return b("ttir.permute", b("ttir.reshape", other, shape=sizes), permutation=inverse)
    if (kept := _without_ones(target, source, sizes)) is not None:
        return b("ttir.reshape", other, shape=kept)
    # A vector along the last dimension can stay if the reshape keeps that dimension.
    if math.prod(sizes) == sizes[-1] == source[-1] == target[-1]:
        return b("ttir.reshape", other, shape=[1] * (len(source) - 1) + sizes[-1:])
    return None


def _without_ones(target: list[int], source: list[int], sizes: list[int]) -> list[int] | None:
    """`sizes`, which broadcast to `target`, rearranged so that they broadcast to `source`. None unless both shapes
    differ in dimensions of size 1 only."""
    from_, to = ([d for d, size in enumerate(each) if size != 1] for each in (target, source))
    if [target[d] for d in from_] != [source[d] for d in to]:
        return None
    kept = [1] * len(source)
    for old, new in zip(from_, to, strict=True):
        kept[new] = sizes[old]
    return kept


@RULES.rewrites(*(f"ttir.{n}" for n in dialect.REDUCTIONS))
def through_reduction(op: Op, b: Builder) -> Value | None:
    """A reduction of permuted dimensions becomes a reduction of the original dimensions."""
    move = producer(op.operands[0], "ttir.permute")
    if move is None or ods.attr(op, "dim_arg") is None:
        return None
    permutation, keep = ods.attr(move, "permutation"), ods.attr(op, "keep_dim")
    rank = len(permutation)
    dims = {permutation[d % rank] for d in ods.attr(op, "dim_arg")}
    reduced = b(op.operation.name, move.operands[0], dim_arg=sorted(dims), keep_dim=keep)
    if keep:
        return b("ttir.permute", reduced, permutation=permutation)
    left = [d for d in permutation if d not in dims]
    return b("ttir.permute", reduced, permutation=[sorted(left).index(d) for d in left])


@RULES.rewrites(*(f"ttir.{n}" for n in dialect.REDUCTIONS if n != "prod"))
def reduction_of_joined_dimensions(op: Op, b: Builder) -> Value | None:
    """Neighbouring dimensions that a reshape has parted, and that are reduced together, stay joined, as the pixels of
    an image. Otherwise each row of pixels would have padding of its own, and the library would permute the tensor.

    The rule leaves rows alone. `prod` multiplies along one dimension after the other, so its roundings would change.
    """
    move, dims = producer(op.operands[0], "ttir.reshape"), ods.attr(op, "dim_arg")
    sizes = shape(op.operands[0])
    dims = sorted(d % len(sizes) for d in dims or [])
    if move is None or len(dims) < 2 or dims != list(range(dims[0], dims[-1] + 1)) or dims[-1] == len(sizes) - 1:
        return None
    joined = [*sizes[: dims[0]], math.prod(sizes[d] for d in dims), *sizes[dims[-1] + 1 :]]
    whole = b("ttir.reshape", move.operands[0], shape=joined)
    reduced = b(op.operation.name, whole, dim_arg=dims[:1], keep_dim=False)
    return b("ttir.reshape", reduced, shape=shape(op.results[0])) if ods.attr(op, "keep_dim") else reduced


@RULES.rewrites("ttir.layer_norm", "ttir.rms_norm")
def through_norm(op: Op, b: Builder) -> Value | None:
    """A reshape that keeps the last dimension moves behind a normalization, which only uses that dimension."""
    move = movement(op.operands[0])
    if move is None or move.name != "ttir.reshape" or shape(move.operands[0])[-1:] != shape(op.results[0])[-1:]:
        return None
    operands = ods.operands_of(op)
    operands["input"] = move.operands[0]
    return again(b, move, b(op.operation.name, *operands.values(), **ods.attrs_of(op)), op.results[0])


@RULES.rewrites("ttir.embedding")
def through_embedding(op: Op, b: Builder) -> Value | None:
    """Ids of (B, S) are looked up as they are, and not as a vector: rows of ids stay in the layout of the input."""
    ids, table = op.operands
    move = producer(ids, "ttir.reshape")
    if move is None or len(shape(move.operands[0])) != 2:
        return None
    row = shape(table)[-1:]
    if _grows(shape(ids) + row, shape(move.operands[0]) + row):
        return None
    return b("ttir.reshape", b("ttir.embedding", move.operands[0], table), shape=shape(op.results[0]))


@RULES.rewrites("ttir.matmul", "ttir.linear")
def through_matmul_rows(op: Op, b: Builder) -> Value | None:
    """Removes the reshape of (B, S, K) to (B*S, K) before a product with (K, N): rows may have several dimensions."""
    a, c = op.operands[0], op.operands[1]
    move = producer(a, "ttir.reshape")
    if move is None or len(shape(c)) != 2 or ods.attr(op, "transpose_a"):
        return None
    source = shape(move.operands[0])
    if len(source) <= len(shape(a)) or source[-1] != shape(a)[-1] or not _may_sink(move):
        return None
    bias = ods.operands_of(op).get("bias")
    if bias is not None and math.prod(shape(bias)) != shape(bias)[-1]:
        return None
    operands = [move.operands[0], *list(op.operands)[1:]]
    return b("ttir.reshape", b(op.operation.name, *operands, **ods.attrs_of(op)), shape=shape(op.results[0]))


@RULES.rewrites("ttir.matmul")
def through_matmul_batches(op: Op, b: Builder) -> Value | None:
    """Removes reshapes of the batch dimensions of both factors: matrices may have several.

    (A, B, M, K) as (A*B, M, K) times (A, B, K, N) as (A*B, K, N) is (A, B, M, N) as (A*B, M, N).
    """
    moves = [movement(factor) for factor in op.operands]
    if any(move is None or move.name != "ttir.reshape" for move in moves):
        return None
    sources = [move.operands[0] for move in moves if move is not None]
    batches = [shape(source)[:-2] for source in sources]
    kept = all(shape(s)[-2:] == shape(x)[-2:] for s, x in zip(sources, op.operands, strict=True))
    if not kept or batches[0] != batches[1] or len(batches[0]) < len(shape(op.results[0])) - 2:
        return None
    return b("ttir.reshape", b("ttir.matmul", *sources, **ods.attrs_of(op)), shape=shape(op.results[0]))


@RULES.rewrites("ttir.reshape")
def through_index(op: Op, b: Builder) -> Value | None:
    """One index of a dimension of a reshaped tensor is a slice of this dimension joined with the next one.

    (4, 3, 8)[:, 1] is (4, 24)[:, 8:16]. This needs one reshape less, and no tiles of 3 rows.
    """
    cut = producer(op.operands[0], "ttir.slice_static")
    if cut is None or not single_use(op.operands[0]) or producer(cut.operands[0], "ttir.reshape") is None:
        return None
    sizes, taken, result = shape(cut.operands[0]), shape(cut.results[0]), shape(op.results[0])
    begins, step = ods.attr(cut, "begins"), ods.attr(cut, "step")
    for d in range(len(sizes) - 1):
        if taken[d] != 1 or result != taken[:d] + taken[d + 1 :] or taken[d + 1] != sizes[d + 1] or step[d + 1] != 1:
            continue
        size = sizes[d + 1]
        first = [*begins[:d], begins[d] * size, *begins[d + 2 :]]
        ends = [*ods.attr(cut, "ends")[:d], (begins[d] + 1) * size, *ods.attr(cut, "ends")[d + 2 :]]
        joined = b("ttir.reshape", cut.operands[0], shape=[*sizes[:d], sizes[d] * size, *sizes[d + 2 :]])
        return b("ttir.slice_static", joined, begins=first, ends=ends, step=[*step[:d], 1, *step[d + 2 :]])
    return None


@RULES.rewrites("ttir.reshape")
def through_last_index(op: Op, b: Builder) -> Value | None:
    """One index of the last dimension of a reshaped tensor is a slice with steps of the tensor before.

    (4, 24) as (4, 12, 2)[..., 1] is (4, 24)[:, 1::2]. This needs no tiles with two columns: complex numbers as pairs.
    """
    cut = producer(op.operands[0], "ttir.slice_static")
    if cut is None or not single_use(op.operands[0]):
        return None
    split = producer(cut.operands[0], "ttir.reshape")
    sizes, taken = shape(cut.operands[0]), shape(cut.results[0])
    if split is None or len(taken) < 2 or taken[-1] != 1 or 0 in taken or shape(op.results[0]) != taken[:-1]:
        return None
    (x,), size = split.operands, sizes[-1]
    if shape(x) != [*sizes[:-2], sizes[-2] * size]:
        return None
    *begins, row, column = ods.attr(cut, "begins")
    *ends, last, _ = ods.attr(cut, "ends")
    *step, along, _ = ods.attr(cut, "step")
    begins, ends, step = [*begins, row * size + column], [*ends, (last - 1) * size + column + 1], [*step, along * size]
    return b("ttir.slice_static", x, begins=begins, ends=ends, step=step)

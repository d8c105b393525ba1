"""Query, key and value: one product for all three, and one op that splits it into heads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, RuleSet, producer, shape, single_use, users
from tt_torch.mlir.ttir.constness import is_constant
from tt_torch.mlir.ttir.passes.fuse_attention import SPLIT
from tt_torch.mlir.ttir.passes.fuse_matmul import MATMULS
from tt_torch.mlir.types import Op, Operand, Value

RULES = RuleSet("fuse-heads")


@dataclass(frozen=True)
class Part:
    """The (B, S, H * D) of `maker` as (B, S, H, D), permuted to (B, H, S, D) by `split`, or reshaped if S is 1."""

    maker: Op
    split: Op

    @property
    def heads(self) -> int:
        return shape(self.split.results[0])[1]


def _split_of(maker: Op) -> Part | None:
    """How the result of an op is split into heads, if nothing else reads it."""
    (result, *others) = maker.results
    if others or not single_use(result):
        return None
    (split,) = users(result)
    if split.name == "ttir.reshape" and not _is_split(split) and single_use(split.results[0]):
        (split,) = users(split.results[0])
    if not _is_split(split):
        return None
    batch, heads, length, size = shape(split.results[0])
    return Part(maker, split) if shape(result) == [batch, length, heads * size] else None


def _is_split(op: Op) -> bool:
    """Whether an op moves heads before the positions; for one position, that is a reshape of (B, 1, H * D)."""
    if op.operation.name == "ttir.permute":
        return bool(ods.attr(op, "permutation") == SPLIT)
    if op.operation.name != "ttir.reshape" or len(shape(op.results[0])) != 4:
        return False
    batch, heads, _, size = shape(op.results[0])
    return shape(op.operands[0]) == [batch, 1, heads * size]


def _maker(split: Op, *names: str) -> Op | None:
    """The op that makes what `split` splits into heads, if it is one of `names`. A permute must have a reshape
    before it."""
    if not _is_split(split):
        return None
    apart = producer(split.operands[0], "ttir.reshape") if split.operation.name == "ttir.permute" else split
    return producer(apart.operands[0], *names) if apart is not None else None


def _three(makers: Iterable[Op], first: Op) -> list[Part]:
    """The parts of three ops in the order of the program, if the permute `first` is the first one of exactly three."""
    parts = [part for maker in makers if (part := _split_of(maker)) is not None]
    parts = sorted(parts, key=lambda part: sum(other.split.is_before_in_block(part.split) for other in parts))
    alike = len({tuple(shape(part.split.results[0])[::2] + shape(part.split.results[0])[3:]) for part in parts}) == 1
    return parts if len(parts) == 3 and alike and parts[0].split == first.operation else []


def _replaced(b: Builder, joint: Value, parts: list[Part], first: Op) -> Value:
    """Splits `joint`, which has the columns of `parts` in their order. Returns the value that replaces `first`."""
    heads, keys, _ = (part.heads for part in parts)
    grouped = None if keys == heads else keys
    made = b("ttir.split_query_key_value_and_split_heads", joint, num_heads=heads, num_kv_heads=grouped)
    mine = next(i for i, part in enumerate(parts) if part.split == first.operation)
    for i, part in enumerate(parts):
        if i != mine:
            part.split.results[0].replace_all_uses_with(made[i])
    return made[mine]


@RULES.rewrites("ttir.permute", "ttir.reshape")
def joint_projection(op: Op, b: Builder) -> Value | None:
    """Three projections of one input become one product with concatenated weights.

    The projection with another number of heads is the query. It has a multiple of the heads of the other two.
    """
    linear = _maker(op, *MATMULS)
    if linear is None:
        return None
    fields = _fields(linear)
    parts = _three([reader for reader in users(fields["a"]) if _is_alike(reader, linear)], op)
    parts = sorted(parts, key=lambda part: sum(other.heads == part.heads for other in parts) > 1)
    if not parts or parts[1].heads != parts[2].heads or parts[0].heads % parts[1].heads:
        return None
    operands = [_fields(part.maker) for part in parts]
    if not all(_is_ready(o[name], op) for o in operands for name in ("b", "bias")):
        return None
    columns = 0 if ods.attr(linear, "transpose_b") else 1
    weight = b("ttir.concat", [o["b"] for o in operands], dim=columns)
    biases = [o["bias"] for o in operands]
    bias = None if biases[0] is None else b("ttir.concat", biases, dim=0)
    for part in parts:
        b = b.also_from(part.maker)
    name = "ttir.matmul" if bias is None else "ttir.linear"
    joint = b(name, fields["a"], weight, *([] if bias is None else [bias]), **_transposed(linear))
    return _replaced(b, joint, parts, op)


def _fields(linear: Op) -> dict[str, Operand]:
    return {"bias": None} | ods.operands_of(linear)


def _transposed(linear: Op) -> dict[str, bool]:
    return {name: ods.attr(linear, name) for name in ("transpose_a", "transpose_b")}


def _is_alike(reader: Op, linear: Op) -> bool:
    """Whether both are products of one value with a constant matrix, with a bias or without, and no activation."""
    if reader.name not in MATMULS or ods.attrs_of(reader).get("activation"):
        return False
    mine, theirs = _fields(reader), _fields(linear)
    if mine["a"] != theirs["a"] or len(shape(mine["b"])) != 2 or not is_constant(mine["b"]):
        return False
    if (mine["bias"] is None) != (theirs["bias"] is None) or _transposed(reader) != _transposed(linear):
        return False
    return mine["bias"] is None or (len(shape(mine["bias"])) == 1 and is_constant(mine["bias"]))


def _is_ready(value: Value | None, op: Op) -> bool:
    """Whether `value` is known before `op`."""
    return value is None or isinstance(value.owner, ir.Block) or value.owner.is_before_in_block(op.operation)


@RULES.rewrites("ttir.permute", "ttir.reshape")
def parts_of_one_product(op: Op, b: Builder) -> Value | None:
    """Three slices of (B, S, (H + 2 * K) * D) that are split into heads become one op. Together they are all of it."""
    cut = _maker(op, "ttir.slice_static")
    if cut is None or len(shape(cut.results[0])) != 3:
        return None
    (x,) = cut.operands
    cuts = [reader for reader in users(x) if reader.name == "ttir.slice_static"]
    parts = _three(cuts, op)
    parts = sorted(parts, key=lambda part: ods.attr(part.maker, "begins")[2])
    if not parts or parts[1].heads != parts[2].heads or parts[0].heads % parts[1].heads:
        return None
    begin = 0
    for part in parts:
        width = shape(part.maker.results[0])[2]
        whole = {"begins": [0, 0, begin], "ends": [*shape(x)[:2], begin + width], "step": [1, 1, 1]}
        if any(ods.attr(part.maker, name) != value for name, value in whole.items()):
            return None
        begin += width
    return _replaced(b, x, parts, op) if begin == shape(x)[2] else None


@RULES.rewrites("ttir.slice_static")
def parts_beside_each_other(op: Op, b: Builder) -> Value | None:
    """Heads of one product that have query, key and value beside each other, as in GPT-NeoX.

    The columns of the weights are moved, so that all queries come first.
    """
    cuts = users(op.operands[0])
    split = op.operands[0].owner
    linear = None if isinstance(split, ir.Block) else _maker(split, *MATMULS)
    if linear is None or not _are_thirds(cuts, op) or ods.attrs_of(linear).get("activation"):
        return None
    fields = _fields(linear)
    given = [(fields[name], rank) for name, rank in (("b", 2), ("bias", 1)) if fields[name] is not None]
    between = [linear.results[0], split.operands[0]]
    if not all(map(single_use, between)) or not all(len(shape(v)) == rank and is_constant(v) for v, rank in given):
        return None
    batch, heads, length, width = shape(op.results[0])
    columns = 3 * heads * width
    if shape(linear.results[0])[-1] != columns:
        return None
    dims = {"b": 0 if ods.attr(linear, "transpose_b") else 1, "bias": 0}
    operands = {
        name: value if value is None or name == "a" else _parts_first(b, value, dims[name], heads)
        for name, value in ods.operands_of(linear).items()
    }
    joint = b.also_from(linear)(linear.name, *operands.values(), **ods.attrs_of(linear))
    if shape(joint) != [batch, length, columns]:  # the product may have one dimension for both
        joint = b("ttir.reshape", joint, shape=[batch, length, columns])
    made = b("ttir.split_query_key_value_and_split_heads", joint, num_heads=heads)
    for cut in cuts:
        if cut != op.operation:
            cut.results[0].replace_all_uses_with(made[_third(cut)])
    return made[_third(op)]


def _are_thirds(cuts: list[Op], first: Op) -> bool:
    """Whether slices are the thirds of the last dimension, and `first` is the first of them in the program."""
    if len(cuts) != 3 or any(cut.name != "ttir.slice_static" for cut in cuts):
        return False
    if any(cut != first.operation and not first.operation.is_before_in_block(cut) for cut in cuts):
        return False
    *outer, whole = shape(first.operands[0])
    third = whole // 3
    found = sorted([ods.attr(cut, "begins"), ods.attr(cut, "ends"), ods.attr(cut, "step")] for cut in cuts)
    wanted = [[[0] * 3 + [i * third], [*outer, (i + 1) * third], [1] * 4] for i in range(3)]
    return len(outer) == 3 and whole == 3 * third and found == wanted


def _third(cut: Op) -> int:
    return ods.attr(cut, "begins")[3] // shape(cut.results[0])[3]


def _parts_first(b: Builder, value: Value, dim: int, heads: int) -> Value:
    """`value` with the dimension (heads, 3, width) as (3, heads, width)."""
    sizes = shape(value)
    apart = [*sizes[:dim], heads, 3, sizes[dim] // heads // 3, *sizes[dim + 1 :]]
    order = [*range(dim), dim + 1, dim, *range(dim + 2, len(apart))]
    moved = b("ttir.permute", b("ttir.reshape", value, shape=apart), permutation=order)
    return b("ttir.reshape", moved, shape=sizes)


@RULES.rewrites("ttir.permute")
def norm_of_heads(op: Op, b: Builder) -> Value | None:
    """A norm of each head, as in Qwen3, is computed behind the permute, so that the split follows its product."""
    norm = producer(op.operands[0], "ttir.rms_norm") if ods.attr(op, "permutation") == SPLIT else None
    if norm is None or not single_use(op.operands[0]) or producer(norm.operands[0], "ttir.reshape") is None:
        return None
    operands = ods.operands_of(norm)
    operands["input"] = b("ttir.permute", operands["input"], permutation=SPLIT)
    return b.also_from(norm)("ttir.rms_norm", *operands.values(), **ods.attrs_of(norm))

"""Collectives of a mesh: fewer of them, and fewer values that cross between chips.

`torch.distributed` gathers and scatters along dimension 0 only. For another dimension, DTensor writes a slice per chip
and a concatenation around the collective. TTIR's collectives take any dimension.

An `all_reduce` stays whole if all of its result is read: the library's own op scatters and gathers inside.
"""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.infer import make
from tt_torch.mlir.mesh import mesh_of
from tt_torch.mlir.rules import Builder, RuleSet, dtype, producer, shape, single_use
from tt_torch.mlir.ttir.passes.canonicalize import splat
from tt_torch.mlir.types import Op, Value

RULES = RuleSet("fuse-collectives")
FLOATS = ("f32", "bf16")


def _resized(x: Value, dim: int, size: int) -> ir.Type:
    sizes = shape(x)
    sizes[dim] = size
    return make(sizes, dtype(x))


def _axis(op: Op) -> int:
    return int(ods.attr(op, "cluster_axis"))


def _only(x: Value, *names: str) -> Op | None:
    """The op that makes `x`, if it is one of `names` and nothing else reads `x`."""
    op = producer(x, *names)
    return op if op is not None and single_use(x) else None


def _parts(concat: Op) -> tuple[Value, int] | None:
    """The value that the operands of a concatenation cut into parts of one size, in order, and the cut dimension."""
    slices = [op for x in concat.operands if (op := producer(x, "ttir.slice_static")) is not None]
    if len(slices) < max(2, len(concat.operands)):
        return None
    x, count = slices[0].operands[0], len(slices)
    spans = [list(zip(ods.attr(op, "begins"), ods.attr(op, "ends"), strict=True)) for op in slices]
    cut = [dim for dim, size in enumerate(shape(x)) if spans[0][dim] != (0, size)]
    if len(cut) != 1 or any(op.operands[0] != x or set(ods.attr(op, "step")) != {1} for op in slices):
        return None
    (dim,), whole = cut, [(0, size) for size in shape(x)]
    size = whole[dim][1] // count
    in_order = [[*whole[:dim], (i * size, (i + 1) * size), *whole[dim + 1 :]] for i in range(count)]
    return (x, dim) if spans == in_order and size * count == whole[dim][1] else None


def _chain(x: Value, name: str, attribute: str, dim: int) -> list[Op]:
    """The collectives of one kind along one dimension, one after the other. The last of them makes `x`."""
    op = producer(x, name)
    if op is None or ods.attr(op, attribute) != dim:
        return []
    inner = op.operands[0]
    return [*(_chain(inner, name, attribute, dim) if single_use(inner) else []), op]


@RULES.rewrites("ttir.concat")
def gather_of_another_dimension(op: Op, b: Builder) -> Value | None:
    """concat(slices along g of all_gather(x, g), d) is all_gather(x, d), with a slice per chip.

    For two chips, x of the shape 2x3, g = 0 and d = 1: 4x3 is gathered, cut into two of 2x3, and joined as 2x6.
    """
    found = _parts(op)
    if found is None:
        return None
    (x, cut), dim, count = found, int(ods.attr(op, "dim")), len(op.operands)
    chain = _chain(x, "ttir.all_gather", "all_gather_dim", cut)
    while chain and shape(chain[0].operands[0])[cut] * count != shape(x)[cut]:
        chain = chain[1:]
    if not chain or dim == cut:
        return None
    value = chain[0].operands[0]
    for gather in chain:
        chips = shape(gather.results[0])[cut] // shape(gather.operands[0])[cut]
        kind = _resized(value, dim, shape(value)[dim] * chips)
        value = b("ttir.all_gather", value, type=kind, all_gather_dim=dim, cluster_axis=_axis(gather))
    return value


@RULES.rewrites("ttir.reduce_scatter")
def scatter_of_another_dimension(op: Op, b: Builder) -> Value | None:
    """reduce_scatter(concat(slices of x along d, g), g) is reduce_scatter(x, d), with a slice per chip."""
    dim = int(ods.attr(op, "scatter_dim"))
    chain = _chain(op.results[0], "ttir.reduce_scatter", "scatter_dim", dim)
    concat = _only(chain[0].operands[0], "ttir.concat")
    found = _parts(concat) if concat is not None and ods.attr(concat, "dim") == dim else None
    if concat is None or found is None:
        return None
    (x, cut), count = found, len(concat.operands)
    if cut == dim or shape(op.results[0])[dim] * count != shape(concat.results[0])[dim]:
        return None
    for scatter in chain:
        chips = shape(scatter.operands[0])[dim] // shape(scatter.results[0])[dim]
        kind = _resized(x, cut, shape(x)[cut] // chips)
        x = b("ttir.reduce_scatter", x, type=kind, scatter_dim=cut, cluster_axis=_axis(scatter))
    return x


@RULES.rewrites("ttir.mesh_partition")
def part_of_a_sum(op: Op, b: Builder) -> Value | None:
    """The chip's own part of a sum along the same axis is a reduce_scatter. A sum along the other axis moves behind
    the partition."""
    total = _only(op.operands[0], "ttir.all_reduce")
    if total is None:
        return None
    (x,), dim, kind = total.operands, ods.attr(op, "dim"), op.results[0].type
    if _axis(total) == _axis(op):
        return b("ttir.reduce_scatter", x, type=kind, scatter_dim=dim, cluster_axis=_axis(op))
    own = b("ttir.mesh_partition", x, type=kind, dim=dim, cluster_axis=_axis(op))
    return b("ttir.all_reduce", own, type=kind, cluster_axis=_axis(total))


@RULES.rewrites("ttir.mesh_partition")
def part_of_what_was_gathered(op: Op, b: Builder) -> Value | None:
    """The chip's own part of what was gathered is what the chip had."""
    gather = producer(op.operands[0], "ttir.all_gather")
    if gather is None or _axis(gather) != _axis(op) or ods.attr(gather, "all_gather_dim") != ods.attr(op, "dim"):
        return None
    return gather.operands[0]


@RULES.rewrites("ttir.all_gather")
def gathered_parts_of_a_sum(op: Op, b: Builder) -> Value | None:
    """A reduce_scatter and the gather of its parts are one all_reduce."""
    scatter = _only(op.operands[0], "ttir.reduce_scatter")
    if scatter is None or _axis(scatter) != _axis(op):
        return None
    if ods.attr(scatter, "scatter_dim") != ods.attr(op, "all_gather_dim"):
        return None
    (x,) = scatter.operands
    return b("ttir.all_reduce", x, type=x.type, cluster_axis=_axis(op))


@RULES.rewrites("ttir.add")
def sum_of_sums(op: Op, b: Builder) -> Value | None:
    """all_reduce(x) + all_reduce(y) is all_reduce(x + y): one exchange instead of two. The rule also takes
    (z + all_reduce(x)) + all_reduce(y), as in a layer whose attention and MLP read the same input."""
    for here, there in ((0, 1), (1, 0)):
        last, rest = _only(op.operands[here], "ttir.all_reduce"), op.operands[there]
        if last is None or rest.type != last.results[0].type:
            continue
        if (together := _joined(b, last, rest)) is not None:
            return together
        inner = _only(rest, "ttir.add")
        for i in (0, 1) if inner is not None else ():
            if (together := _joined(b, last, rest.owner.operands[i])) is not None:
                return b("ttir.add", rest.owner.operands[1 - i], together)
    return None


def _joined(b: Builder, last: Op, other: Value) -> Value | None:
    """The sum over the chips of both, if `other` is a sum along the same axis, too."""
    first = _only(other, "ttir.all_reduce")
    if first is None or first == last or _axis(first) != _axis(last) or other.type != last.results[0].type:
        return None
    both = b("ttir.add", first.operands[0], last.operands[0])
    return b("ttir.all_reduce", both, type=other.type, cluster_axis=_axis(last))


@RULES.rewrites("ttir.typecast")
def narrow_before_a_gather(op: Op, b: Builder) -> Value | None:
    """float32 values that become bfloat16 after a gather become bfloat16 before it, so that fewer bytes cross."""
    gather, target = _only(op.operands[0], "ttir.all_gather"), dtype(op.results[0])
    if gather is None or (str(dtype(op.operands[0])), str(target)) != ("f32", "bf16"):
        return None
    x = b("ttir.typecast", gather.operands[0], dtype=target)
    return b("ttir.all_gather", x, type=op.results[0].type, **ods.attrs_of(gather))


@RULES.rewrites("ttir.all_gather")
def widen_after_a_gather(op: Op, b: Builder) -> Value | None:
    """bfloat16 values that become float32 before a gather become float32 after it, so that fewer bytes cross."""
    cast = _only(op.operands[0], "ttir.typecast")
    if cast is None or (str(dtype(cast.operands[0])), str(dtype(op.operands[0]))) != ("bf16", "f32"):
        return None
    kind = make(shape(op.results[0]), dtype(cast.operands[0]))
    gathered = b("ttir.all_gather", cast.operands[0], type=kind, **ods.attrs_of(op))
    return b("ttir.typecast", gathered, dtype=dtype(op.results[0]))


@RULES.rewrites("ttir.sum")
def sum_of_what_was_gathered(op: Op, b: Builder) -> Value | None:
    """Each chip sums its own values first, so that only sums cross between chips."""
    gather = _only(op.operands[0], "ttir.all_gather")
    if gather is None or str(dtype(op.operands[0])) not in FLOATS:
        return None
    dims = ods.attr(op, "dim_arg")
    if ods.attr(gather, "all_gather_dim") not in [dim % len(shape(op.operands[0])) for dim in dims]:
        return None
    own = b("ttir.sum", gather.operands[0], **ods.attrs_of(op))
    return b("ttir.all_reduce", own, type=own.type, cluster_axis=_axis(gather))


@RULES.rewrites("ttir.divide")
def mean_of_equal_values(op: Op, b: Builder) -> Value | None:
    """The mean over chips of a value that all of them have is this value. DTensor makes such a mean in an RMS norm of a
    split dimension, because it adds epsilon in place to the mean of the squares."""
    total = _only(op.operands[0], "ttir.all_reduce")
    if total is None or splat(op.operands[1]) != mesh_of(op)[_axis(total)]:
        return None
    (x,) = total.operands
    return x if x.type == op.results[0].type and _is_equal(x, _axis(total), 4) else None


def _is_equal(x: Value, axis: int, depth: int) -> bool:
    """Whether the chips along an axis have the same value, as far as `depth` ops before it show."""
    exchange = producer(x, "ttir.all_reduce", "ttir.all_gather")
    if exchange is not None or splat(x) is not None:
        return exchange is None or _axis(exchange) == axis
    op = producer(x, "ttir.add", "ttir.divide") if depth else None
    return op is not None and all(_is_equal(each, axis, depth - 1) for each in op.operands)

"""Collectives of `torch.distributed` in a graph of one chip become ops of the mesh (`mesh_ops.py`).

DTensor traces what one chip does. Its graphs refer to process groups, and to numbers that differ from chip to chip:

    %i = device_mesh._runtime_compute_coordinate_on_dim(...)       the place of the chip in its row
    %p = aten.slice(%x, 1, 8 * %i, 8 * %i + 8)                     becomes %p = tt_mesh.mesh_partition(%x, dim=1)
    %g = _c10d_functional.all_gather_into_tensor(%y, 4, %group)    becomes %g = tt_mesh.all_gather(%y, dim=0)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from tt_torch.dynamo import mesh_ops
from tt_torch.dynamo.decompositions.random import SEED
from tt_torch.dynamo.own_parts import compute_own_parts
from tt_torch.dynamo.passes.constant_fold import evaluate
from tt_torch.dynamo.passes.rewriting import Rule, Rules, arguments, call, user_line, value
from tt_torch.dynamo.types import Arguments
from tt_torch.errors import UnsupportedOpError
from tt_torch.torch_private.distributed import ranks_along, ranks_of, real_object
from tt_torch.torch_private.one_process import COORDINATE
from tt_torch.torch_private.tensors import unset_fake_temporarily

Mesh = tuple[int, int]
aten = torch.ops.aten
c10d, dtensor = torch.ops._c10d_functional, torch.ops._dtensor
SPREAD = 0x01000193  # seeds of neighbouring chips are this far apart; hashes of two seeds do not resemble each other
REDUCTIONS = ("sum", "avg", "max", "min", "product")
# Ops that take a number, and the same op on a tensor with one element.
OF_TENSORS = {
    getattr(aten, name).Scalar: getattr(aten, name).Tensor
    for name in "add sub mul div eq ne lt le gt ge remainder".split()
}
ARITHMETIC = {operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.neg}


def use_mesh_ops(gm: GraphModule, mesh: Mesh) -> None:
    """Replaces the collectives of a graph, and the numbers that differ from chip to chip.

    Raises UnsupportedOpError for a group that is not a row, a column or all of the mesh, and for parts of different
    sizes.
    """
    for node in gm.graph.find_nodes(op="placeholder"):  # a stand-in for an object may also be a result
        node.meta["val"] = real_object(node.meta.get("val"))
    for node in gm.graph.find_nodes(op="get_attr"):  # a mesh that equals the inputs' mesh, but is no input
        node.meta.setdefault("val", real_object(getattr(gm, node.target)))
    _write_numbers_as_tensors(gm, mesh)
    _rules(gm, mesh).apply(gm.graph)
    compute_own_parts(gm.graph)
    gm.graph.eliminate_dead_code()
    gm.recompile()


def unsupported(node: Node, detail: str) -> UnsupportedOpError:
    return UnsupportedOpError(str(node.target), "collectives", user_line(node), detail)


# --- process groups


def axes_of(node: Node, group: Any, gm: GraphModule, mesh: Mesh) -> list[int]:
    """The axes of the mesh along which a process group lies. It may be the group of any chip."""
    ranks = sorted(_ranks(group, gm))
    (first, *_), (rows, columns) = ranks, mesh
    row, column = divmod(first, columns)
    lines = {
        (0, 1): range(rows * columns),
        (1,): range(row * columns, (row + 1) * columns),
        (0,): range(column, rows * columns, columns),
        (): range(first, first + 1),
    }
    for axes, line in lines.items():
        if ranks == list(line):
            return [axis for axis in axes if mesh[axis] > 1]
    raise unsupported(node, f"its chips are {ranks}, and a group is a row, a column or all of the mesh {mesh}")


def _ranks(group: Any, gm: GraphModule) -> list[int]:
    """The chips of a process group. It is given by its name, or by a mesh and a dimension of the mesh."""
    if not isinstance(group, Node):
        return ranks_of(group)
    device_mesh, dim = group.args
    found = getattr(gm, device_mesh.target) if device_mesh.op == "get_attr" else device_mesh.meta["val"]
    return ranks_along(real_object(found), dim)


# --- collectives


def _rules(gm: GraphModule, mesh: Mesh) -> Rules:
    rules = Rules()

    def of_groups(rule: Callable[[Node, Arguments, dict[str, Any]], Node]) -> Rule:
        def run(node: Node, a: Arguments) -> Node:
            axes = axes_of(node, a["group_name"], gm, mesh)
            return rule(node, a, {"axes": axes, "count": mesh_ops.chips_along(axes, mesh)})

        return run

    for op, rule in FAMILIES.items():
        rules(op)(of_groups(rule))
    rules(c10d.wait_tensor)(lambda node, a: a["tensor"])
    return rules


def _reduction(node: Node, given: str) -> str:
    if given not in REDUCTIONS:
        raise unsupported(node, f"the reduction {given!r}; it takes {', '.join(REDUCTIONS)}")
    return given


def _all_reduce(node: Node, a: Arguments, where: dict[str, Any]) -> Node:
    name = _reduction(node, a["reduce_op"])
    new = call(node, mesh_ops.all_reduce, a["input"], reduce="sum" if name == "avg" else name, **where)
    return call(node, aten.div.Tensor, new, where["count"]) if name == "avg" else new


def _reduce_scatter(node: Node, a: Arguments, where: dict[str, Any]) -> Node:
    name = _reduction(node, a["reduce_op"])
    plain = "sum" if name == "avg" else name
    new = call(node, mesh_ops.reduce_scatter, a["input"], reduce=plain, dim=0, **where)
    return call(node, aten.div.Tensor, new, where["count"]) if name == "avg" else new


def _all_gather(node: Node, a: Arguments, where: dict[str, Any]) -> Node:
    return call(node, mesh_ops.all_gather, a["input"], dim=0, **where)


def _other_dimension(node: Node, a: Arguments, where: dict[str, Any]) -> Node:
    return call(node, mesh_ops.all_to_all, a["input"], split=a["shard_dim"], join=a["gather_dim"], **where)


def _all_to_all(node: Node, a: Arguments, where: dict[str, Any]) -> Node:
    sizes = {*a["output_split_sizes"], *a["input_split_sizes"]}
    if len(sizes) > 1:
        raise unsupported(node, f"parts of the sizes {sorted(sizes)}; all chips get parts of one size")
    return call(node, mesh_ops.all_to_all, a["input"], split=0, join=0, **where)


FAMILIES = {
    c10d.all_gather_into_tensor: _all_gather,
    c10d.all_reduce: _all_reduce,
    c10d.all_to_all_single: _all_to_all,
    c10d.reduce_scatter_tensor: _reduce_scatter,
    dtensor.shard_dim_alltoall: _other_dimension,
}


# --- values that differ from chip to chip


def varying(graph: Graph) -> dict[Node, frozenset[int]]:
    """The axes of the mesh along which the values of each node may differ from chip to chip."""
    return {node: frozenset(axis for _, axis in found) for node, found in reasons(graph).items()}


def reasons(graph: Graph) -> dict[Node, frozenset[tuple[int, int]]]:
    """The reasons why the values of each node may differ from chip to chip.

    A reason is the position of an input that differs, and an axis along which it differs. The position
    `mesh_ops.ALWAYS` stands for an op that makes values differ. A gather or a reduction removes the reasons along its
    axes. After `all_reduce` along axis 1, the reason (0, 1) of its operand is gone, and the reason (0, 0) stays.
    """
    found: dict[Node, frozenset[tuple[int, int]]] = {}
    for position, node in enumerate(graph.find_nodes(op="placeholder")):
        found[node] = frozenset((position, axis) for axis in node.meta.get(mesh_ops.AXES, (0, 1)))
    for node in graph.nodes:
        if node.op not in ("placeholder", "output"):
            read = frozenset[tuple[int, int]]().union(*(found[n] for n in node.all_input_nodes))
            found[node] = _reasons_after(node, read)
    return found


def _reasons_after(node: Node, read: frozenset[tuple[int, int]]) -> frozenset[tuple[int, int]]:
    if node.target not in mesh_ops.OPS:
        return read
    along = node.kwargs["axes"]
    if node.target in (mesh_ops.all_gather, mesh_ops.all_reduce):
        return frozenset((position, axis) for position, axis in read if axis not in along)
    return read | {(mesh_ops.ALWAYS, axis) for axis in along}


def draw_for_each_chip(gm: GraphModule, mesh: Mesh) -> None:
    """Gives different seeds to chips that have different values of a tensor, for random numbers in its form.

    If each chip has its own part of a layer as a plain tensor, dropout drops different elements of each part. If all
    chips have the same sum, dropout drops the same elements of it on each chip.
    """
    axes_of_each = varying(gm.graph)
    for node in gm.graph.find_nodes(op="call_function", target=SEED):
        (like,) = node.args or (None,)
        axes = sorted(axes_of_each.get(like, ()))
        node.args = ()
        if axes:
            with gm.graph.inserting_before(node.next):
                own = _own(node, [place * SPREAD % 2**31 for place in _places(axes, mesh)], mesh)
                new = call(node, aten.add.Tensor, node, own)
            node.replace_all_uses_with(new, lambda user, new=new: user is not new)
    gm.recompile()


# --- numbers that differ from chip to chip


def _write_numbers_as_tensors(gm: GraphModule, mesh: Mesh) -> None:
    """Replaces ops that read numbers which differ from chip to chip. The new ops read a tensor instead: the chip's own
    element of a table with one number per chip."""
    tables: dict[Node, list[int]] = {}
    found = evaluate(gm, fold=True) if any(n.target is COORDINATE for n in gm.graph.nodes) else {}
    for node in list(gm.graph.nodes):
        read = [tables.get(n) for n in node.all_input_nodes]
        if node.target is COORDINATE:
            tables[node] = [_coordinate(found[node.args[0]], chip, node.args[1]) for chip in range(mesh[0] * mesh[1])]
        elif node.target in ARITHMETIC and any(read):
            rows = zip(*(tables.get(x, [x] * mesh[0] * mesh[1]) for x in node.args), strict=True)
            tables[node] = [node.target(*row) for row in rows]
        elif any(read):
            _replace(node, tables, mesh)


def _coordinate(places: torch.Tensor, chip: int, dim: int) -> int:
    """The coordinate of a chip in its mesh. `places` has one or more meshes of one shape, and each chip once."""
    with unset_fake_temporarily():
        _, *coordinates = (places == chip).nonzero()[0].tolist()
    return coordinates[dim]


def _replace(node: Node, tables: dict[Node, list[int]], mesh: Mesh) -> None:
    if node.op == "output":
        raise unsupported(node, "a number that differs from chip to chip is a result")
    with node.graph.inserting_before(node):
        if node.target is aten.slice.Tensor:
            new = _slice(node, arguments(node), tables, mesh)
        elif (target := OF_TENSORS.get(node.target, node.target)) in OF_TENSORS.values():
            new = call(node, target, *(_own(node, tables[x], mesh) if x in tables else x for x in node.args))
        else:
            raise unsupported(node, "it reads a number that differs from chip to chip, as parts of unequal sizes do")
    node.replace_all_uses_with(new)
    node.graph.erase_node(node)


def _slice(node: Node, a: Arguments, tables: dict[Node, list[int]], mesh: Mesh) -> Node:
    x, dim, chips = a["self"], a["dim"] % value(a["self"]).dim(), mesh[0] * mesh[1]
    starts, ends = (tables.get(a[name], [a[name]] * chips) for name in ("start", "end"))
    size = value(node).shape[dim]
    if not isinstance(size, int) or a["step"] != 1 or any(e - s != size for s, e in zip(starts, ends, strict=True)):
        raise unsupported(node, "the chips have parts of different sizes")
    for axes in ([1], [0], [0, 1]):
        count = mesh_ops.chips_along(axes, mesh)
        if starts == [size * place for place in _places(axes, mesh)] and value(x).shape[dim] == size * count:
            return call(node, mesh_ops.mesh_partition, x, dim=dim, axes=axes, count=count)
    first = _own(node, starts, mesh)
    rows = call(node, aten.arange.default, size, dtype=torch.int64, device=value(x).device)
    return call(node, aten.index_select.default, x, dim, call(node, aten.add.Tensor, rows, first))


def _places(axes: Sequence[int], mesh: Mesh) -> list[int]:
    """The place of each chip in its group."""
    chips = product(range(mesh[0]), range(mesh[1]))
    return [chip[axes[0]] if len(axes) == 1 else chip[0] * mesh[1] + chip[1] for chip in chips]


def _differs_only_along(table: list[int], axes: Sequence[int], mesh: Mesh) -> bool:
    return len(set(zip(_places(axes, mesh), table, strict=True))) == mesh_ops.chips_along(axes, mesh)


def _own(node: Node, table: list[int], mesh: Mesh) -> Node:
    """The chip's own number of a table with one number per chip, as a tensor without dimensions."""
    axes = next(a for a in ([1], [0], [0, 1]) if _differs_only_along(table, a, mesh))
    along = dict(zip(_places(axes, mesh), table, strict=True))
    gm = node.graph.owning_module
    with unset_fake_temporarily():
        numbers = torch.tensor([along[place] for place in sorted(along)])
    name = f"of_each_chip_{sum(1 for _ in gm.buffers())}"
    gm.register_buffer(name, numbers)
    every = node.graph.get_attr(name)
    with value(node).fake_mode:
        every.meta["val"] = torch.empty(numbers.shape, dtype=numbers.dtype, device=value(node).device)
    own = call(node, mesh_ops.mesh_partition, every, dim=0, axes=[a for a in axes if mesh[a] > 1], count=len(along))
    return call(node, aten.view.default, own, [])

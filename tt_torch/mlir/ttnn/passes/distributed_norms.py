"""Gives each `ttnn.distributed_rms_norm` the cores, the memory and the semaphore that the library's op needs.

The rows are split by width over a rectangle of cores that begins at the first one: the kernels talk to all cores of
the rectangle around them. The first core has a tile of `stats` for each chip of the line. A chip writes to the tile of
the others that has its number, and increments the semaphore there. The op waits for the other chips, and then resets
its semaphore.

A chip may be one such op ahead of another one, but never two. So two semaphores and two tensors of statistics take
turns along an axis. They are made at the beginning of a program: in tt-metal's sources, making a semaphore waits until
all chips of the host have its value, and have done all earlier work. So nothing else lies where another chip writes.
Mock chips cannot show this.
"""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.functions import block, main
from tt_torch.mlir.mesh import mesh_of
from tt_torch.mlir.parts import even
from tt_torch.mlir.rules import Builder, shape
from tt_torch.mlir.ttnn.distributed_norms import STATS
from tt_torch.mlir.ttnn.layout import Layout, layout_of, tiles, with_layout
from tt_torch.mlir.types import Attrs, Value
from tt_torch.wire.binary import first_chip
from tt_torch.wire.facts import TILE
from tt_torch.wire.messages import SystemDesc

TURNS = 2
FIRST = {"x": 0, "y": 0}


def place_norms(module: ir.Module, system: SystemDesc) -> None:
    with module.context, ir.Location.unknown():
        ops = [op.operation for op in block(main(module)).operations]
        norms = [op for op in ops if op.name == "ttnn.distributed_rms_norm"]
        if norms:
            grid = first_chip(system)["grid_size"]
            _place(ops[0], norms, (grid["y"], grid["x"]))


def _place(first: ir.Operation, norms: list[ir.Operation], grid: tuple[int, int]) -> None:
    turns: dict[int, int] = {}  # the ops along each axis so far
    scratch: dict[tuple[int, int], tuple[Value, Attrs]] = {}
    before = Builder(ir.InsertionPoint(first), norms[0].location)
    numbers = []
    for norm in norms:
        axis = int(ods.attr(norm, "cluster_axis"))
        turn = turns.get(axis, 0)
        turns[axis] = turn + 1
        numbers.append((axis, turn % TURNS))
    for number, key in enumerate(dict.fromkeys(numbers), 1):  # 0 is null
        sizes = [1, 1, TILE, TILE * mesh_of(first)[key[0]]]
        scratch[key] = before("ttnn.empty", type=with_layout(sizes, STATS)), {"global_id": number}
    cores = {"core_ranges": [{"start_coord": FIRST, "end_coord": {"x": grid[1] - 1, "y": grid[0] - 1}}]}
    for _, semaphore in scratch.values():  # after all memory was allocated
        before("ttnn.create_global_semaphore", type=[], core_range_set=cores, initial_value=0, out=semaphore)
    for norm, key in zip(norms, numbers, strict=True):
        _on_cores(norm, *scratch[key], rectangle(tiles(shape(norm.results[0]))[1], grid))


def rectangle(count: int, grid: tuple[int, int]) -> tuple[int, int]:
    """The rows and columns of the largest rectangle of cores that have equally many of `count` tiles. As tensors that
    are split by width lie on whole rows of cores, it is a part of the first row, or has all columns."""
    rows, columns = grid
    few = even(count, columns)
    many = max((row for row in range(1, rows + 1) if count % (row * columns) == 0), default=0)
    return (many, columns) if many * columns > few else (1, few)


def _on_cores(norm: ir.Operation, stats: Value, semaphore: Attrs, cores: tuple[int, int]) -> None:
    x, weight = norm.operands
    b, after = Builder(ir.InsertionPoint(norm), norm.location), Builder(ir.InsertionPoint.after(norm), norm.location)
    count, plain = cores[0] * cores[1], layout_of(norm.results[0])
    split = plain.with_(buffer="L1", memory_layout="WidthSharded", grid=(1, count))
    width = shape(x)[-1]
    rows = with_layout([width // TILE, TILE], Layout(layout_of(weight).dtype))
    vectors = b("ttnn.reshape", weight, type=rows, shape=[width // TILE, TILE])
    config = {
        "compute_with_storage_grid_size": {"x": cores[1], "y": cores[0]},
        "subblock_w": 1,
        "block_h": 1,
        "block_w": width // TILE // count,
        "inplace": False,
    }
    more = {"program_config": config, "semaphore": semaphore}
    kind = with_layout(shape(x), split)
    made = b("ttnn.distributed_rms_norm", x, vectors, stats, type=kind, **ods.attrs_of(norm) | more)
    back = after("ttnn.to_memory_config", made, type=norm.results[0].type)
    norm.results[0].replace_all_uses_with(back)
    norm.erase()

"""A form of an op that the library takes, and how long it takes by a model of the chip."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.rules import shape
from tt_torch.mlir.ttnn import sharded
from tt_torch.mlir.ttnn.layout import Layout, layout_of, tiles, with_layout
from tt_torch.mlir.ttnn.optimizer.cores import Cores
from tt_torch.mlir.types import Attrs, Value
from tt_torch.wire.chips import GAP, KERNEL, MATRIX_FLOPS, PASSES
from tt_torch.wire.facts import TILE

LAUNCH = GAP + KERNEL  # seconds that each additional op costs in any case
TILE_FLOPS = 2 * TILE**3  # of the product of two tiles


@dataclass(frozen=True)
class Choice:
    """The layout of an op's result, and those that operands must get first, by their position.

    The op gets `attributes`. `scratch` counts the bytes of L1 that it needs on each core beside the parts of its
    operands and its result. `products` counts the products of two tiles on the busiest core, and `launches` counts the
    moves that the library makes on its own. The operands at the positions `weights` are weights, which are brought into
    their layouts once, before the first call.
    """

    result: Layout
    operands: Mapping[int, Layout] = field(default_factory=dict)
    attributes: Attrs = field(default_factory=dict)
    scratch: int = 0
    products: float = 0.0
    launches: int = 0
    weights: tuple[int, ...] = ()

    def reads(self, op: ir.Operation) -> list[Layout]:
        """The layouts of all operands while the op runs."""
        return [self.operands.get(i, layout_of(value)) for i, value in enumerate(op.operands)]

    def makes(self, op: ir.Operation) -> list[tuple[Value, Layout]]:
        """All results with their layouts. Results after the first one lie in the same memory, and are not split."""
        first, *rest = op.results
        return [(first, self.result), *((v, layout_of(v).interleaved(self.result.buffer)) for v in rest)]


@contextmanager
def lying(places: Mapping[Value, Layout]) -> Iterator[None]:
    """Gives values other layouts in this context, to ask what ops would take."""
    before = {value: value.type for value in places}
    for value, layout in places.items():
        value.set_type(with_layout(shape(value), layout))
    try:
        yield
    finally:
        for value, kind in before.items():
            value.set_type(kind)


@contextmanager
def taking(op: ir.Operation, choice: Choice) -> Iterator[None]:
    """Gives an op the form `choice` in this context, to ask whether the library takes it."""
    before = {name: op.attributes[name] for name in choice.attributes if name in op.attributes}
    with lying({op.operands[i]: layout for i, layout in choice.operands.items()} | dict(choice.makes(op))):
        configure(op, choice.attributes)
        try:
            yield
        finally:
            configure(op, dict.fromkeys(choice.attributes))
            for name, value in before.items():
                op.attributes[name] = value


def configure(op: ir.Operation, attributes: Attrs) -> None:
    """Sets attributes of an op, and removes those that are None."""
    for name, value in attributes.items():
        if value is not None:
            op.attributes[name] = ods.to_attr(ods.OPS[op.name].attrs[name][0], value)
        elif name in op.attributes:
            del op.attributes[name]


def seconds(op: ir.Operation, choice: Choice, cores: Cores) -> float:
    """The modelled seconds of an op in the form `choice`, with the moves of its operands."""
    moves, dram, l1 = 0.0, 0, 0
    for index, (value, layout) in enumerate(zip(op.operands, choice.reads(op), strict=True)):
        if layout != layout_of(value) and index not in choice.weights:
            moves += moving(value, layout, cores)
        dram, l1 = _add(layout, shape(value), dram, l1)
    if _is_view(op, choice):
        return moves
    for value, layout in choice.makes(op):
        dram, l1 = _add(layout, shape(value), dram, l1)
    compute = choice.products * TILE_FLOPS * _passes(op) / (MATRIX_FLOPS * cores.chip.clock)
    return moves + choice.launches * LAUNCH + max(compute, _traffic(dram, l1, cores) * _slower(op, choice, cores))


def _slower(op: ir.Operation, choice: Choice, cores: Cores) -> float:
    """How many times as long a product of one row of tiles reads its weight, which is most of its traffic, as the chip
    needs at best."""
    if op.name not in sharded.PRODUCTS or tiles(shape(op.operands[0]))[0] > 1:
        return 1.0
    chip, weight = cores.chip, choice.reads(op)[1]
    if weight.buffer != "DRAM":
        return 1.0
    return chip.dram * chip.reached / (chip.bank * weight.cores if weight.sharded else chip.dram * chip.row)


def _is_view(op: ir.Operation, choice: Choice) -> bool:
    """Whether the result has the memory of the operand, so that nothing is moved."""
    if op.name != "ttnn.reshape" or not sharded.keeps_tiles(op):
        return False
    (x,), made = choice.reads(op), choice.result
    return x.tiled and (x.buffer, x.memory_layout, x.grid) == (made.buffer, made.memory_layout, made.grid)


def steps(now: Layout, layout: Layout) -> list[Layout]:
    """The layouts that a value gets, one after the other, to come from the layout `now` into another one. Tiles become
    rows where they lie, so a tensor is first split over the cores, and then each core makes rows of its part."""
    return list(dict.fromkeys(place for place in (layout.with_(tiled=now.tiled), layout) if place != now))


def moving(value: Value, layout: Layout, cores: Cores, now: Layout | None = None) -> float:
    """The modelled seconds of the ops that move a value from the layout `now`, or from its own, into another layout."""
    total, now = 0.0, now or layout_of(value)
    for place in steps(now, layout):
        dram, l1 = _add(now, shape(value), 0, 0)
        total += LAUNCH + _traffic(*_add(place, shape(value), dram, l1), cores)
        now = place
    return total


def while_moving(dims: list[int], now: Layout, layout: Layout, cores: Cores, freed: int) -> int:
    """The most bytes of L1 on a core that the ops need that move a value, beside its bytes before them, of which
    `freed` are free after the first op. An op that makes rows of tiles has room for all tiles of a core, twice (graph
    captures of ttnn 0.81.1)."""
    most, before = 0, 0
    for i, place in enumerate(steps(now, layout)):
        made = place.bytes_of_core(dims, cores.count) if place.buffer == "L1" else 0
        buffers = 0 if place.tiled == now.tiled else 2 * place.with_(tiled=True).bytes_of_core(dims, cores.count)
        most = max(most, before + made + buffers - (freed if i else 0))
        before = made
    return most


def reading(layout: Layout, dims: list[int], cores: Cores) -> float:
    """The modelled seconds to read a value, if the reader waits for nothing else."""
    return _traffic(*_add(layout, dims, 0, 0), cores)


def _traffic(dram: int, l1: int, cores: Cores) -> float:
    """The modelled seconds to move these bytes."""
    return max(dram / (cores.chip.dram * cores.chip.reached), l1 / (cores.chip.l1 * cores.count))


def _add(layout: Layout, dims: list[int], dram: int, l1: int) -> tuple[int, int]:
    size = layout.bytes(dims)
    return (dram, l1 + size) if layout.buffer == "L1" else (dram + size, l1)


def _passes(op: ir.Operation) -> int:
    config: Attrs = ods.attrs_of(op).get("compute_config") or {}
    return PASSES.get(config.get("math_fidelity", ""), PASSES["HiFi4"])

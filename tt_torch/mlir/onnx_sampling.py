"""Nodes of ONNX models that take elements at computed places of a picture, between its elements: GridSample and others.

The elements of a picture are numbered, so that the elements beside all places are gathered at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tt_torch.mlir.onnx_corrections import FLOATS, refused
from tt_torch.mlir.onnx_nodes import Nodes

FAR = 2.0**30  # a place far outside of every picture; places that are NaN or infinite become such a place
CUBIC = -0.75  # the parameter of the cubic convolution


@dataclass(frozen=True)
class Neighbour:
    """For many places, one of the elements beside each place along a dimension. All values are batch x places."""

    place: str  # an integer, and a place in the picture
    factor: str  # "" if it is 1
    inside: str  # whether the element exists; "" if it always does


@dataclass(frozen=True)
class Sampler:
    """How places in a picture become its elements."""

    nodes: Nodes
    mode: bytes
    padding: bytes
    align_corners: bool

    def op(self, op: str, *operands: str | float) -> str:
        """A node whose operands are values or numbers of float32."""
        values = (x if isinstance(x, str) else self.nodes.constant(np.float32(x)) for x in operands)
        return self.nodes.op(op, *values)

    def neighbours(self, place: str, length: int) -> list[Neighbour]:
        """The elements from which the value at a place is computed. A place in the picture is from 0 to length - 1."""
        place = self.op("Clip", self.op("Where", self.op("IsNaN", place), -FAR, place), -FAR, FAR)
        if self.mode == b"nearest":
            return [self._neighbour(self.op("Round", place), "", length)]
        if self.padding == b"reflection":
            place = self._reflected(place, length)
        first = self.op("Floor", place)
        rest = self.op("Sub", place, first)
        if self.mode == b"linear":
            factors = [(0, self.op("Sub", 1.0, rest)), (1, rest)]
        else:
            factors = [(step, self._cubic(self.op("Abs", self.op("Sub", rest, step)), step)) for step in (-1, 0, 1, 2)]
        return [self._neighbour(self.op("Add", first, step), factor, length) for step, factor in factors]

    def _cubic(self, distance: str, step: int) -> str:
        """The factor of an element by its distance, which is below 1 for the two nearest elements and else below 2."""
        near = [CUBIC + 2, -(CUBIC + 3), 0.0, 1.0]
        far = [CUBIC, -5 * CUBIC, 8 * CUBIC, -4 * CUBIC]
        first, second, *others = near if step in (0, 1) else far
        total = self.op("Add", self.op("Mul", distance, first), second)
        return reduce(lambda total, c: self.op("Add", self.op("Mul", total, distance), c), others, total)

    def _reflected(self, place: str, length: int) -> str:
        """The place in the picture after reflections at its ends. A picture of one element has only one place."""
        low, size = (0.0, length - 1.0) if self.align_corners else (-0.5, float(length))
        if size == 0:
            return self.op("Mul", self.op("Sub", place, place), 0.0)
        distance = self.op("Abs", self.op("Sub", place, low))
        turns = self.op("Floor", self.op("Div", distance, 2 * size))
        there = self.op("Sub", distance, self.op("Mul", turns, 2 * size))
        return self.op("Add", self.op("Min", there, self.op("Sub", 2 * size, there)), low)

    def _neighbour(self, place: str, factor: str, length: int) -> Neighbour:
        """The element at a whole place. A place beyond the picture becomes a place in it. With the padding "zeros", it
        is not `inside`."""
        from onnx import TensorProto

        inside = ""
        if self.padding == b"zeros":
            inside = self.op("And", self.op("GreaterOrEqual", place, 0.0), self.op("LessOrEqual", place, length - 1.0))
        elif self.padding == b"reflection":
            place = self.op("Round", self._reflected(place, length))
        return Neighbour(self.nodes.cast(self.op("Clip", place, 0.0, length - 1.0), TensorProto.INT64), factor, inside)

    def terms(self, x: str, size: Sequence[int], sides: Sequence[Sequence[Neighbour]], channels: int) -> list[str]:
        """The terms of the values at places. `x` is batch x channels x elements, a term is batch x channels x places.
        `sides` has the neighbours of the places along each dimension."""
        nodes, terms = self.nodes, []
        for corner in product(*sides):
            steps = [prod(size[dim + 1 :]) for dim in range(len(size))]
            parts = [nodes.op("Mul", one.place, nodes.constant(step)) for one, step in zip(corner, steps, strict=True)]
            number = self._over_channels(reduce(lambda a, b: nodes.op("Add", a, b), parts))
            count = nodes.constant([1, channels, 1])
            term = nodes.op("GatherElements", x, nodes.op("Expand", number, count), axis=2)
            if insides := [one.inside for one in corner if one.inside]:
                inside = reduce(lambda a, b: nodes.op("And", a, b), insides)
                zero = nodes.op("CastLike", nodes.constant(np.float32(0)), x)
                term = nodes.op("Where", self._over_channels(inside), term, zero)
            if factors := [one.factor for one in corner if one.factor]:
                term = nodes.op("Mul", term, self._over_channels(reduce(lambda a, b: nodes.op("Mul", a, b), factors)))
            terms.append(term)
        return terms

    def _over_channels(self, value: str) -> str:
        return self.nodes.op("Unsqueeze", value, self.nodes.constant([1]))


PICTURE = 2  # dimensions of a picture
MOVED_BY_HALF = 16  # the first opset in which RoiAlign has its places in the middles of elements
MODES = {b"bilinear": b"linear", b"bicubic": b"cubic"}  # the names before opset 20


def _grid_sample(nodes: Nodes) -> bool:
    """Places are between -1 and 1 along each dimension of the picture. The grid has the last dimension first."""
    from onnx import TensorProto

    x, grid = nodes.node.input
    (batch, channels, *size), shape = nodes.facts.shapes[x], nodes.facts.shapes[grid]
    mode, align = nodes.given.get("mode", b"linear"), bool(nodes.given.get("align_corners", 0))
    sampler = Sampler(nodes, MODES.get(mode, mode), nodes.given.get("padding_mode", b"zeros"), align)
    if mode != b"nearest" and nodes.facts.types[x] not in FLOATS:
        raise refused(nodes.node, 'expected mode "nearest" for integers')
    places = nodes.cast(
        nodes.op("Reshape", grid, nodes.constant([batch, prod(shape[1:-1]), len(size)])), TensorProto.FLOAT
    )
    sides = []
    for dim, length in enumerate(size):
        one = nodes.op("Gather", places, nodes.constant(len(size) - 1 - dim), axis=2)
        place = sampler.op("Mul", sampler.op("Add", one, 1), (length - 1) / 2 if align else length / 2)
        sides.append(sampler.neighbours(place if align else sampler.op("Sub", place, 0.5), length))
    flat = nodes.op("Reshape", x, nodes.constant([batch, channels, prod(size)]))
    if mode != b"nearest":
        flat = nodes.cast(flat, TensorProto.FLOAT)
    total = nodes.total(sampler.terms(flat, size, sides, channels))
    return nodes.done(
        nodes.op("CastLike", nodes.op("Reshape", total, nodes.constant([batch, channels, *shape[1:-1]])), x)
    )


def _roi_align(nodes: Nodes) -> bool:
    """Each result is the average of places in one part of a region. `pictures` has the picture of each region.

    In the mode max, it is the largest of all elements beside these places, times their factors.
    """
    from onnx import TensorProto

    x, regions, pictures = nodes.node.input
    channels, *size = nodes.facts.shapes[x][1:]
    count, ratio = nodes.facts.shapes[regions][0], nodes.given.get("sampling_ratio", 0)
    parts = [nodes.given.get(name, 1) for name in ("output_height", "output_width")]
    if ratio <= 0 or nodes.facts.types[x] not in FLOATS:
        return False
    averages = nodes.given.get("mode", b"avg") == b"avg"
    sampler, grid = Sampler(nodes, b"linear", b"border", False), [part * ratio for part in parts]
    ends = sampler.op("Mul", nodes.cast(regions, TensorProto.FLOAT), nodes.given.get("spatial_scale", 1.0))
    sides, outsides = [], []
    for dim, length in enumerate(size):
        first, last = (nodes.op("Gather", ends, nodes.constant([n]), axis=1) for n in (1 - dim, 3 - dim))
        place = _region_places(sampler, first, last, parts[dim], ratio)
        shape = nodes.constant([count, *(grid[i] if i == dim else 1 for i in range(PICTURE))])
        spread = nodes.op("Expand", nodes.op("Reshape", place, shape), nodes.constant([count, *grid]))
        place = nodes.op("Reshape", spread, nodes.constant([count, prod(grid)]))
        sides.append(sampler.neighbours(sampler.op("Clip", place, 0, length - 1), length))
        outside = nodes.op("Or", sampler.op("Less", place, -1), sampler.op("Greater", place, length))
        outsides.append(nodes.op("Unsqueeze", outside, nodes.constant([1])))
    chosen = nodes.cast(nodes.op("Gather", x, pictures, axis=0), TensorProto.FLOAT)
    flat = nodes.op("Reshape", chosen, nodes.constant([count, channels, prod(size)]))
    terms = sampler.terms(flat, size, sides, channels)
    values = nodes.total(terms) if averages else nodes.op("Max", *terms)
    values = sampler.op("Where", nodes.op("Or", *outsides), 0, values)
    apart = nodes.op("Reshape", values, nodes.constant([count, channels, parts[0], ratio, parts[1], ratio]))
    reduced = nodes.op("ReduceSum" if averages else "ReduceMax", apart, nodes.constant([3, 5]), keepdims=0)
    return nodes.done(nodes.op("CastLike", sampler.op("Div", reduced, ratio**2) if averages else reduced, x))


def _region_places(sampler: Sampler, first: str, last: str, parts: int, ratio: int) -> str:
    """The places between two ends along a dimension, with `ratio` places in each part."""
    nodes = sampler.nodes
    usual = b"half_pixel" if nodes.facts.opset >= MOVED_BY_HALF else b"output_half_pixel"
    half = nodes.given.get("coordinate_transformation_mode", usual) == b"half_pixel"
    extent = sampler.op("Sub", last, first)
    step = sampler.op("Div", extent if half else sampler.op("Max", extent, 1), parts)
    own = nodes.constant(((np.arange(parts * ratio) + 0.5) / ratio).astype(np.float32))
    return nodes.op("Add", sampler.op("Sub", first, 0.5) if half else first, nodes.op("Mul", step, own))


def _deform_conv(nodes: Nodes) -> bool:
    """A convolution that takes elements at moved places. Each result has its own moves, and may weight the elements."""
    from onnx import TensorProto

    x, weight, moves = nodes.node.input[:3]
    kind, kernel, given = nodes.facts.types[x], nodes.facts.shapes[weight], nodes.given
    (batch, channels, *size), result = nodes.facts.shapes[x], nodes.facts.shapes[moves][2:]
    apart, groups, taps = given.get("offset_group", 1), given.get("group", 1), prod(kernel[2:])
    if kind != TensorProto.FLOAT or len(size) != PICTURE:
        return False
    sampler = Sampler(nodes, b"linear", b"zeros", False)
    moves = nodes.op("Reshape", moves, nodes.constant([batch * apart, taps, PICTURE, prod(result)]))
    sides = []
    for dim, places in enumerate(_kernel_places(given, kernel[2:], result)):
        own = nodes.op("Add", nodes.op("Gather", moves, nodes.constant(dim), axis=2), nodes.constant(places))
        sides.append(sampler.neighbours(nodes.op("Reshape", own, nodes.constant([batch * apart, -1])), size[dim]))
    flat = nodes.op("Reshape", x, nodes.constant([batch * apart, channels // apart, prod(size)]))
    values = nodes.total(sampler.terms(flat, size, sides, channels // apart))
    if nodes.operand(4):
        values = nodes.op("Mul", values, nodes.op("Reshape", nodes.operand(4), nodes.constant([batch * apart, 1, -1])))
    columns = nodes.op("Reshape", values, nodes.constant([batch, groups, channels // groups * taps, prod(result)]))
    rows = nodes.op("Reshape", weight, nodes.constant([groups, kernel[0] // groups, channels // groups * taps]))
    total = nodes.op("Reshape", nodes.op("MatMul", rows, columns), nodes.constant([batch, kernel[0], *result]))
    if nodes.operand(3):
        total = nodes.op("Add", total, nodes.op("Reshape", nodes.operand(3), nodes.constant([-1, 1, 1])))
    return nodes.done(total)


def _kernel_places(given: dict[str, Any], kernel: Sequence[int], result: Sequence[int]) -> list[np.ndarray]:
    """For each dimension, the places that the elements of the kernel read, as an array of taps x results."""
    strides, dilations = (given.get(name, [1, 1]) for name in ("strides", "dilations"))
    pads, found = given.get("pads", [0, 0, 0, 0]), []
    for dim in range(PICTURE):
        begins = np.arange(result[dim]) * strides[dim] - pads[dim]
        own = np.arange(kernel[dim])[:, None] * dilations[dim] + begins  # places in the kernel x in the result
        order = (0, 2) if dim == 0 else (1, 3)
        full = np.expand_dims(own, tuple(i for i in range(4) if i not in order))
        found.append(np.broadcast_to(full, (*kernel, *result)).reshape(prod(kernel), -1).astype(np.float32))
    return found


SAMPLING: dict[str, Callable[[Nodes], bool]] = {
    "DeformConv": _deform_conv,
    "GridSample": _grid_sample,
    "RoiAlign": _roi_align,
}

"""Nodes of ONNX models that take elements from places that are known while compiling: Pad, Slice, Resize and others."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from tt_torch.mlir.onnx_corrections import FLOATS, refused
from tt_torch.mlir.onnx_folding import slice_start
from tt_torch.mlir.onnx_nodes import Nodes

OLD_NEAREST = b"before opset 11"  # a mode of our own: rounds down, or up in a dimension that becomes smaller
MOST_RESIZED = 4096  # elements along a dimension that Resize changes: its factors are found from a square matrix


def _pad(nodes: Nodes) -> bool:
    """Each dimension is cropped, and then filled with its own elements, or with a value that is no constant."""
    x, pads, axes, mode = nodes.operand(0), nodes.value(1), nodes.value(3), nodes.given.get("mode", b"constant")
    fill = nodes.operand(2) if mode == b"constant" else ""
    if pads is None or (nodes.operand(3) and axes is None) or (mode == b"constant" and not _is_variable(nodes, fill)):
        return False
    shape = nodes.facts.shapes[x]
    dims = [axis % len(shape) for axis in (range(len(shape)) if axes is None else map(int, axes))]
    insides: list[np.ndarray] = [np.ones(1, bool)] * len(shape)
    for dim, begin, end in zip(dims, *np.split(pads, 2), strict=True):
        first, last = max(0, -begin), shape[dim] - max(0, -end)
        wanted = np.arange(-max(0, begin), last - first + max(0, end))
        if last <= first and len(wanted):
            if not fill:
                raise refused(nodes.node, f"there is nothing in dimension {dim} to be repeated")
            return nodes.done(nodes.op("Expand", fill, nodes.constant(nodes.facts.shapes[nodes.result])))
        x = _taken(nodes, x, first + FILLED[mode](wanted, last - first), dim, shape[dim])
        insides[dim] = (wanted >= 0) & (wanted < last - first)
    return nodes.done(nodes.op("Where", nodes.constant(_all(insides)), x, _scalar(nodes, fill)) if fill else x)


def _is_variable(nodes: Nodes, name: str) -> bool:
    return bool(name) and name not in nodes.facts.values


def _scalar(nodes: Nodes, name: str) -> str:
    return nodes.op("Reshape", name, nodes.constant(np.zeros(0, np.int64)))


def _taken(nodes: Nodes, x: str, places: np.ndarray, dim: int, length: int) -> str:
    """The elements at some places along a dimension of this length."""
    if np.array_equal(places, np.arange(length)):
        return x
    return nodes.op("Gather", x, nodes.constant(places), axis=dim)


def _reflected(wanted: np.ndarray, length: int) -> np.ndarray:
    turned = np.abs(wanted) % max(2 * (length - 1), 1)
    return np.minimum(turned, 2 * (length - 1) - turned)


# By mode: the places, from 0 to length - 1, of the elements that stand at wanted places, which may lie outside.
FILLED: dict[bytes, Callable[[np.ndarray, int], np.ndarray]] = {
    b"constant": lambda wanted, length: np.clip(wanted, 0, length - 1),
    b"edge": lambda wanted, length: np.clip(wanted, 0, length - 1),
    b"reflect": _reflected,
    b"wrap": lambda wanted, length: wanted % max(length, 1),
}


def _slice(nodes: Nodes) -> bool:
    """If a step is negative or nothing is left, elements are taken by their places. torch-mlir cannot slice backwards
    to the start, nor to an end before the start."""
    starts, ends, axes, steps = (nodes.value(number) for number in range(1, 5))
    if starts is None or ends is None or any(nodes.operand(n) and nodes.value(n) is None for n in (3, 4)):
        return False
    x, shape = nodes.operand(0), nodes.facts.shapes[nodes.operand(0)]
    steps = np.ones(len(starts), int) if steps is None else steps
    if (steps > 0).all() and 0 not in nodes.facts.shapes.get(nodes.result, []):
        return False
    dims = range(len(starts)) if axes is None else (int(axis) % len(shape) for axis in axes)
    for dim, start, end, step in zip(dims, starts, ends, steps, strict=True):
        first = slice_start(int(start), int(step), shape[dim])
        x = _taken(nodes, x, np.arange(shape[dim])[first : int(end) : int(step)], dim, shape[dim])
    return nodes.done(x)


def _compress(nodes: Nodes) -> bool:
    """The elements at the places where the condition is true. The condition must be known."""
    x, condition, shape = nodes.operand(0), nodes.value(1), nodes.facts.shapes[nodes.operand(0)]
    if condition is None:
        return False
    if "axis" not in nodes.given:
        x, shape = nodes.op("Reshape", x, nodes.constant([-1])), [int(np.prod(shape))]
    dim = nodes.given.get("axis", 0) % len(shape)
    return nodes.done(_taken(nodes, x, np.flatnonzero(condition), dim, shape[dim]))


def _resize(nodes: Nodes) -> bool:
    """In each dimension, an element of the result is a sum of elements times factors. ONNX's reference evaluator gives
    the factors.

    Elements whose factor is 0 are not in the sum, because they may be infinite or NaN.
    """
    x, shape = nodes.operand(0), nodes.facts.shapes[nodes.operand(0)]
    result = nodes.facts.shapes.get(nodes.result)
    if result is None or max(shape, default=0) > MOST_RESIZED:
        return False
    axes = [axis % len(shape) for axis in nodes.given.get("axes", range(len(shape)))]
    factors, region = _scales(nodes, shape, axes), _region(nodes, len(axes))
    if factors is None or region is None:
        return False
    insides: list[np.ndarray] = [np.ones(1, bool)] * len(shape)
    for axis, scale, (first, last) in zip(axes, factors, region, strict=True):
        if shape[axis] == result[axis] and scale in (None, 1.0) and (first, last) == (0, 1):
            continue
        matrix = _matrix(nodes, shape[axis], result[axis], scale, [first, last])
        x = _weighted(nodes, x, axis, matrix)
        insides[axis] = np.abs(matrix).max(0) > 0
    if _all(insides).all():
        return nodes.done(x)
    outside = nodes.constant(nodes.given.get("extrapolation_value", 0.0), like=nodes.operand(0))
    return nodes.done(nodes.op("Where", nodes.constant(_all(insides)), x, outside))


def _all(insides: list[np.ndarray]) -> np.ndarray:
    """Which elements are inside along all dimensions."""
    return np.asarray(reduce(np.logical_and.outer, insides))


def _scales(nodes: Nodes, shape: list[int], axes: list[int]) -> list[float | None] | None:
    """The scale of each axis, or None for an axis whose sizes give it. The result is None if neither scales nor sizes
    are known."""
    scales, sizes = nodes.value(2), nodes.value(3)
    if scales is not None and scales.size:
        return [float(scale) for scale in scales]
    policy = nodes.given.get("keep_aspect_ratio_policy", b"stretch")
    if sizes is None or policy == b"stretch":
        return None if sizes is None else [None] * len(axes)
    choose = min if policy == b"not_larger" else max
    return [choose(size / shape[axis] for size, axis in zip(sizes.tolist(), axes, strict=True))] * len(axes)


def _region(nodes: Nodes, count: int) -> list[tuple[float, float]] | None:
    """The part of each axis that is resized, as fractions of its length; None if it is not known."""
    if nodes.given.get("coordinate_transformation_mode", b"") != b"tf_crop_and_resize":
        return [(0, 1)] * count
    region = nodes.value(1)
    return None if region is None else list(zip(region[:count].tolist(), region[count:].tolist(), strict=True))


def _matrix(nodes: Nodes, length: int, result: int, scale: float | None, region: list[float]) -> np.ndarray:
    """A matrix of length x result: the factor of each element along a dimension in each element of the result."""
    from onnx.helper import make_node

    dropped = ("axes", "keep_aspect_ratio_policy", "extrapolation_value")
    attributes = {name: value for name, value in nodes.given.items() if name not in dropped}
    if attributes.get("nearest_mode") == OLD_NEAREST:
        attributes["nearest_mode"] = "ceil" if scale is not None and scale < 1 else "floor"
    unit = np.eye(length, dtype=np.float32)
    if scale is not None and int(scale * length) < result:  # a policy rounds the size up: the last element is repeated
        if attributes.get("coordinate_transformation_mode", b"half_pixel") not in ENDLESS or _near_ends(attributes):
            raise refused(nodes.node, "this form cannot be combined with a keep_aspect_ratio_policy")
        unit = np.pad(unit, ((0, 0), (0, int(1 / scale) + 1)), "edge")
    feeds: dict[str, np.ndarray] = {"x": unit, "roi": np.array([0, region[0], 1, region[1]], np.float32)}
    if scale is None:
        feeds["sizes"] = np.array([length, result])
    else:
        feeds["scales"] = np.array([1, scale], np.float32)
    names = ["x", "roi", "scales" if scale is not None else "", "sizes" if scale is None else ""]
    (matrix,) = nodes.facts.run(make_node("Resize", names, ["y"], **attributes), feeds)
    return matrix[:, :result]


ENDLESS = (b"half_pixel", b"asymmetric")  # transformations of coordinates that do not depend on the length


def _near_ends(attributes: dict[str, object]) -> bool:
    """Whether the factors near an end differ from the factors of an input that goes on there."""
    return bool(attributes.get("exclude_outside", 0) or attributes.get("antialias", 0))


def _weighted(nodes: Nodes, x: str, axis: int, matrix: np.ndarray) -> str:
    """The product with a matrix along a dimension, without the elements whose factors are 0."""
    rank, terms = len(nodes.facts.shapes[nodes.operand(0)]), []
    for places, factors in zip(*_terms(matrix), strict=True):
        taken = _taken(nodes, x, places, axis, len(matrix))
        if not (factors == 1).all():
            if nodes.facts.types[nodes.operand(0)] not in FLOATS:
                raise refused(nodes.node, 'expected mode "nearest" for integers')
            shaped = factors.reshape([-1 if i == axis else 1 for i in range(rank)])
            taken = nodes.op("Mul", taken, nodes.constant(shaped, like=nodes.operand(0)))
        terms.append(taken)
    return nodes.total(terms)


def _terms(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places and the factors of the terms of each column. If a column has fewer terms than another, its last term
    is divided into equal parts."""
    counts = (matrix != 0).sum(0)
    most = max(int(counts.max(initial=0)), 1)
    places = np.argsort(matrix == 0, axis=0, kind="stable")[:most]  # places with a factor come first
    last, number = np.maximum(counts, 1) - 1, np.arange(most)[:, None]
    places = np.take_along_axis(places, np.minimum(number, last), 0)
    return places, np.take_along_axis(matrix, places, 0) / np.where(number < last, 1, most - last)


def _col2im(nodes: Nodes) -> bool:
    """Each element of the picture is the sum of all elements of the blocks that go to its place."""
    x, image, block = nodes.operand(0), nodes.value(1), nodes.value(2)
    if image is None or block is None:
        return False
    (batch, wide, _), rank = nodes.facts.shapes[x], len(image)
    size, channels = [int(length) for length in image], wide // int(np.prod(block))
    strides, dilations = (nodes.given.get(name, [1] * rank) for name in ("strides", "dilations"))
    pads = nodes.given.get("pads", [0] * 2 * rank)
    targets = np.zeros((1, 1), int)
    for length, width, step, gap, begin, end in zip(
        size, block, strides, dilations, pads[:rank], pads[rank:], strict=True
    ):
        count = (length + begin + end - gap * (width - 1) - 1) // step + 1
        own = gap * np.arange(width)[:, None] + step * np.arange(count) - begin
        own = np.where((own >= 0) & (own < length), own, -np.inf)
        targets = targets[:, None, :, None] * length + own[:, None]
        targets = targets.reshape(targets.shape[0] * targets.shape[1], -1)
    flat = nodes.op("Reshape", x, nodes.constant([batch, channels, targets.size]))
    terms = []
    zero = nodes.constant(0, like=x)
    for places in _sources(targets.ravel(), int(np.prod(size))):
        taken = nodes.op("Gather", flat, nodes.constant(np.maximum(places, 0)), axis=2)
        terms.append(taken if places.min() >= 0 else nodes.op("Where", nodes.constant(places >= 0), taken, zero))
    return nodes.done(nodes.op("Reshape", nodes.total(terms), nodes.constant([batch, channels, *size])))


def _sources(targets: np.ndarray, count: int) -> np.ndarray:
    """For each of `count` targets, a column of the places that go to it; -1 fills columns with fewer places."""
    places = np.flatnonzero(targets >= 0)
    places = places[np.argsort(targets[places], kind="stable")]
    target = targets[places].astype(int)
    number = np.arange(len(places)) - np.searchsorted(target, target)  # among the places of its target
    columns = np.full((max(int(number.max(initial=0)) + 1, 1), count), -1)
    columns[number, target] = places
    return columns


PLACES: dict[str, Callable[[Nodes], bool]] = {
    "Col2Im": _col2im,
    "Compress": _compress,
    "Pad": _pad,
    "Resize": _resize,
    "Slice": _slice,
}

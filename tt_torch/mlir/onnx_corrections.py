"""Rewrites nodes of ONNX models that torch-mlir imports with another meaning.

They were found by comparing torch-mlir's results with the results of ONNX Runtime. torch-mlir's Mod of integers has
another sign in some cases. Its pools have their windows at other places if they have ceil_mode, or if the padding at
the end differs from the padding at the start. It ignores dilations of AveragePool. In torch-mlir, a NaN equals itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tt_torch.errors import UnsupportedOpError

if TYPE_CHECKING:
    import onnx

FLOATS = (1, 10, 11, 16)  # ONNX's numbers of float32, float16, float64 and bfloat16
UNSIGNED = (2, 4, 12, 13)  # ONNX's numbers of uint8, uint16, uint32 and uint64
BYTES = (2, 3)  # of uint8 and int8
MOST_AVERAGED = 2  # dimensions of the windows that torch-mlir averages
# Why these nodes could not be replaced by the nodes that they run.
OPEN_STEPS = {
    "If": "its condition must be known while compiling",
    "Loop": "it has results of all iterations, so its number of iterations must be known while compiling, and must be "
    "neither 0 nor large",
    "Scan": "its number of steps must be known while compiling, and must be neither 0 nor large",
}
UNPADDED = (b"", b"NOTSET", b"VALID")
Known: TypeAlias = dict[str, tuple[int, list[int]]]  # element type and sizes of values, where all sizes are known


def correct(model: onnx.ModelProto) -> None:
    """Changes the nodes of the graph. It changes no graphs inside of nodes, and no functions: torch-mlir refuses these.
    Raises UnsupportedOpError for a node that needs sizes which are not known."""
    from onnx.shape_inference import infer_shapes

    graph = model.graph
    if not any(node.op_type in CORRECTIONS for node in graph.node):
        return
    known = known_values(infer_shapes(model).graph)
    refill(graph.node, [new for old in graph.node for new in CORRECTIONS.get(old.op_type, _as_it_is)(old, known)])
    # ONNX counts windows that ceil_mode leaves out, so all shapes are inferred anew.
    own = {name for node in graph.node if node.domain for name in node.output}
    refill(graph.value_info, [value for value in graph.value_info if value.name in own])
    for output in graph.output:
        output.type.tensor_type.ClearField("shape")


def refill(field: Any, values: Sequence[Any]) -> None:
    """Gives a repeated field of a message copies of these values, some of which may be in the field now."""
    copies = [type(value).FromString(value.SerializeToString()) for value in values]
    del field[:]
    field.extend(copies)


def _as_it_is(node: onnx.NodeProto, _: Known) -> list[onnx.NodeProto]:
    return [node]


def known_values(graph: onnx.GraphProto) -> Known:
    found: Known = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        dims = value.type.tensor_type.shape.dim
        if value.type.tensor_type.HasField("shape") and all(d.HasField("dim_value") for d in dims):
            found[value.name] = value.type.tensor_type.elem_type, [d.dim_value for d in dims]
    return found | {value.name: (value.data_type, list(value.dims)) for value in graph.initializer}


def _mod(node: onnx.NodeProto, _: Known) -> list[onnx.NodeProto]:
    """The remainder with the sign of the dividend, plus the divisor where this sign is not the divisor's."""
    if _attributes(node).get("fmod", 0):
        return [node]
    from onnx.helper import make_node

    (x, y), (result,) = node.input, node.output
    names = ("rest", "zero", "below", "under", "other", "exact", "some", "wrong", "sum")
    own = {name: f"{result}/{name}" for name in names}
    fmod: dict[str, Any] = {"fmod": 1}
    steps = [
        ("Mod", [x, y], "rest"), ("Sub", [y, y], "zero"),
        ("Less", [own["rest"], own["zero"]], "below"), ("Less", [y, own["zero"]], "under"),
        ("Xor", [own["below"], own["under"]], "other"), ("Equal", [own["rest"], own["zero"]], "exact"),
        ("Not", [own["exact"]], "some"), ("And", [own["other"], own["some"]], "wrong"),
        ("Add", [own["rest"], y], "sum"), ("Where", [own["wrong"], own["sum"], own["rest"]], ""),
    ]  # fmt: skip
    return [
        make_node(op, inputs, [own.get(name, result)], node.name, **(fmod if op == "Mod" else {}))
        for op, inputs, name in steps
    ]


@dataclass(frozen=True)
class Windows:
    """The windows of a pool along one dimension. In ceil_mode, `end` is the padding at the end that they need."""

    length: int
    size: int
    stride: int
    dilation: int
    begin: int
    given_end: int
    ceil: bool

    @property
    def count(self) -> int:
        """The number of windows. The last window that ceil_mode adds counts only if it begins before the input ends."""
        room = self.length + self.begin + self.given_end - self._reach
        if not self.ceil:
            return room // self.stride + 1
        every = -(-room // self.stride) + 1
        return every - ((every - 1) * self.stride >= self.length + self.begin)

    @property
    def end(self) -> int:
        needed = (self.count - 1) * self.stride + self._reach - self.length - self.begin
        return max(0, needed) if self.ceil else self.given_end

    @property
    def _reach(self) -> int:
        return self.dilation * (self.size - 1) + 1

    def counted(self, padding: bool) -> np.ndarray:
        """How many elements of each window belong to the input or, if `padding` is true, to the given padding."""
        total = self.length + self.begin + max(self.end, self.given_end)
        inside = np.zeros(total)
        inside[(0 if padding else self.begin) : self.begin + self.length + (self.given_end if padding else 0)] = 1
        places = self.stride * np.arange(self.count)[:, None] + self.dilation * np.arange(self.size)
        return inside[places].sum(axis=1)


def windows_of(node: onnx.NodeProto, known: Known) -> list[Windows]:
    if node.input[0] not in known:
        raise refused(node, "the sizes of its input must be known")
    given, size = _attributes(node), known[node.input[0]][1][2:]
    ones, none = [1] * len(size), [0] * 2 * len(size)
    strides, dilations, pads = (given.get(n, d) for n, d in (("strides", ones), ("dilations", ones), ("pads", none)))
    kernel, automatic = given["kernel_shape"], given.get("auto_pad", b"NOTSET")
    if automatic == b"VALID":
        pads = none
    elif automatic != b"NOTSET":
        halves = [_same(*v, automatic == b"SAME_UPPER") for v in zip(size, kernel, strides, dilations, strict=True)]
        pads = [half[end] for end in (0, 1) for half in halves]
    ceil = bool(given.get("ceil_mode", 0)) and not automatic.startswith(b"SAME")
    values = zip(size, kernel, strides, dilations, pads[: len(size)], pads[len(size) :], strict=True)
    return [Windows(n, k, s, d, begin, end, ceil) for n, k, s, d, begin, end in values]


def _same(length: int, size: int, stride: int, dilation: int, upper: bool) -> tuple[int, int]:
    """The padding at both ends that gives ceil(length / stride) windows. An odd element is at the end if `upper`."""
    total = max(0, (-(-length // stride) - 1) * stride + dilation * (size - 1) + 1 - length)
    return (total // 2, total - total // 2) if upper else (total - total // 2, total // 2)


def _max_pool(node: onnx.NodeProto, known: Known) -> list[onnx.NodeProto]:
    """Windows that ceil_mode adds become windows over padding at the end. Maxima of bytes are computed on floats."""
    from onnx.helper import make_node

    kind = known.get(node.input[0], (0, []))[0]
    pool = (
        _pool(node, node.input[0], node.output, windows_of(node, known)) if _attributes(node).get("ceil_mode") else node
    )
    if kind not in BYTES or len(node.output) > 1:
        return [pool]
    made = type(pool).FromString(pool.SerializeToString())
    (result,) = node.output
    made.input[0], made.output[0] = f"{result}/numbers", f"{result}/largest"
    return [
        make_node("Cast", [node.input[0]], [made.input[0]], node.name, to=FLOATS[0]),
        made,
        make_node("Cast", [made.output[0]], [result], node.name, to=kind),
    ]


def _average_pool(node: onnx.NodeProto, known: Known) -> list[onnx.NodeProto]:
    """The input is padded with zeros. The average of each window is divided by the share of its elements that counts.

    torch-mlir ignores dilations, and it crashes for windows of three dimensions.
    """
    from onnx.helper import make_node, tensor_dtype_to_np_dtype
    from onnx.numpy_helper import from_array

    given = _attributes(node)
    by_slices = any(d != 1 for d in given.get("dilations", [])) or len(given["kernel_shape"]) > MOST_AVERAGED
    padded = given.get("ceil_mode", 0) or any(given.get("pads", [])) or given.get("auto_pad", b"") not in UNPADDED
    if not padded and not by_slices:
        return [node]
    windows, (result,) = windows_of(node, known), node.output
    parts = [w.counted(given.get("count_include_pad", 0)) / w.size for w in windows]
    part = reduce(np.multiply.outer, parts)[None, None].astype(tensor_dtype_to_np_dtype(known[node.input[0]][0]))
    pads = np.array([0, 0, *(w.begin for w in windows), 0, 0, *(w.end for w in windows)])
    own = {name: f"{result}/{name}" for name in ("pads", "padded", "average", "part")}
    return [
        make_node("Constant", [], [own["pads"]], name=node.name, value=from_array(pads)),
        make_node("Constant", [], [own["part"]], name=node.name, value=from_array(part)),
        make_node("Pad", [node.input[0], own["pads"]], [own["padded"]], name=node.name),
        *(_averages if by_slices else _averages_of_pool)(node, own["padded"], own["average"], windows),
        make_node("Div", [own["average"], own["part"]], [result], name=node.name),
    ]


def _averages_of_pool(node: onnx.NodeProto, x: str, result: str, windows: Sequence[Windows]) -> list[onnx.NodeProto]:
    """The averages as one pool. The input `x` already has its padding."""
    return [_pool(node, x, [result], [replace(w, begin=0, given_end=0, ceil=False) for w in windows])]


def _averages(node: onnx.NodeProto, x: str, result: str, windows: Sequence[Windows]) -> list[onnx.NodeProto]:
    """The averages as sums of slices. Each dimension is summed in turn, and the sum is divided by the window's size."""
    from onnx.helper import make_node
    from onnx.numpy_helper import from_array

    made: list[onnx.NodeProto] = []

    def new(op: str, *operands: str, name: str = "", **given: Any) -> str:
        made.append(make_node(op, operands, [name or f"{result}/{len(made)}"], node.name, **given))
        return str(made[-1].output[0])

    def constant(value: Any) -> str:
        return new("Constant", value=from_array(np.asarray(value)))

    for dim, w in enumerate(windows, 2):
        slices = []
        for begin in range(0, w.size * w.dilation, w.dilation):
            places = (begin, begin + (w.count - 1) * w.stride + 1, dim, w.stride)
            slices.append(new("Slice", x, *(constant([place]) for place in places)))
        x = reduce(lambda total, one: new("Add", total, one), slices)
    size = new("CastLike", constant(np.float32(np.prod([w.size for w in windows]))), x)
    new("Div", x, size, name=result)
    return made


def _pool(node: onnx.NodeProto, source: str, results: Sequence[str], windows: Sequence[Windows]) -> onnx.NodeProto:
    """A node like the given one, but without ceil_mode and with the padding of the windows."""
    from onnx.helper import make_attribute, make_node

    new = make_node(node.op_type, [source], results, node.name)
    pads = make_attribute("pads", [*(w.begin for w in windows), *(w.end for w in windows)])
    dropped = ("ceil_mode", "auto_pad", "pads", "count_include_pad")
    new.attribute.extend([pads, *(a for a in node.attribute if a.name not in dropped)])
    return new


def _equal(node: onnx.NodeProto, known: Known) -> list[onnx.NodeProto]:
    """A NaN is not equal to itself."""
    from onnx.helper import make_node

    if known.get(node.input[0], (0, []))[0] not in FLOATS:
        return [node]
    (result,) = node.output
    own = {name: f"{result}/{name}" for name in ("equal", "nan", "number")}
    return [
        make_node("Equal", node.input, [own["equal"]], node.name),
        make_node("IsNaN", node.input[:1], [own["nan"]], node.name),
        make_node("Not", [own["nan"]], [own["number"]], node.name),
        make_node("And", [own["equal"], own["number"]], [result], node.name),
    ]


def _of_open_steps(node: onnx.NodeProto, _: Known) -> list[onnx.NodeProto]:
    raise refused(node, OPEN_STEPS[node.op_type])


def refused(node: onnx.NodeProto, detail: str) -> UnsupportedOpError:
    return UnsupportedOpError(f"onnx.{node.op_type}", "import-onnx", f"node {node.name or node.output[0]!r}", detail)


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    from onnx.helper import get_attribute_value

    return {a.name: get_attribute_value(a) for a in node.attribute}


CORRECTIONS: dict[str, Callable[[onnx.NodeProto, Known], list[onnx.NodeProto]]] = {
    "AveragePool": _average_pool,
    "Equal": _equal,
    "MaxPool": _max_pool,
    "Mod": _mod,
    **dict.fromkeys(OPEN_STEPS, _of_open_steps),
}

"""Computes the parts of an ONNX model that depend on shapes and constants only, before torch-mlir reads it.

A model often computes the shape for a Reshape from the shapes of other values, chooses a branch by a rank, or runs a
loop a constant number of times. All of that is known while the model is compiled. ONNX's own reference evaluator
computes the values. A branch or a loop with known conditions is replaced by the nodes that it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tt_torch.mlir.onnx_corrections import refill, refused

if TYPE_CHECKING:
    import onnx

FOLDED = frozenset(
    "Abs Add And ArgMax ArgMin BitShift BitwiseAnd BlackmanWindow Cast CastLike Ceil Clip Compress Concat Constant "
    "ConstantOfShape Cos Div Equal Exp Expand EyeLike Flatten Floor Gather GatherElements GatherND Greater "
    "GreaterOrEqual HammingWindow HannWindow Identity Less LessOrEqual Log Max MelWeightMatrix Min Mod Mul Neg NonZero "
    "Not OneHot Or Pad Pow Range ReduceMax ReduceMin ReduceProd ReduceSum Relu Reshape Round ScatterElements ScatterND "
    "Shape Sign Sin Size Slice Split Sqrt Squeeze Sub Sum Tile TopK Transpose Trilu Unsqueeze Where Xor".split()
)
OF_SHAPES = ("Shape", "Size")  # ops that need no values of their operand
MOST_ELEMENTS = 1 << 16  # a larger value stays a computation, for example a large tensor of ones
MOST_NODES = 20_000  # in all unrolled loops together
MOST_ROUNDS = 8  # the shapes inside of a branch are known only after it was chosen


def fold(model: onnx.ModelProto) -> None:
    """Replaces values that are known by constants, and branches and loops by nodes. `model` is changed."""
    from onnx.shape_inference import infer_shapes

    del model.graph.value_info[:]  # types of values before their graphs were known may have too few dimensions
    for _ in range(MOST_ROUNDS):
        folder = Folder(infer_shapes(model, data_prop=True))
        nodes = folder.folded(model.graph.node)
        if not folder.changed:
            return
        refill(model.graph.node, _used(nodes, {value.name for value in model.graph.output}))


class Folder:
    """One pass over a graph whose shapes were inferred."""

    def __init__(self, model: onnx.ModelProto) -> None:
        from onnx.numpy_helper import to_array

        self.opsets, self.ir_version = model.opset_import, model.ir_version
        self.changed, self.unrolled = False, 0
        self.shapes = _static_shapes(model.graph)
        self.types = element_types(model.graph)
        self.values: dict[str, np.ndarray] = {
            value.name: to_array(value)
            for value in model.graph.initializer
            if int(np.prod(value.dims)) <= MOST_ELEMENTS
        }

    def folded(self, nodes: Iterable[onnx.NodeProto]) -> list[onnx.NodeProto]:
        return [new for node in nodes for new in self._node(node)]

    def _node(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            self._note_constant(node)
            return [node]
        if node.op_type == "If" and node.input[0] in self.values:
            return self._branch(node)
        if node.op_type == "Loop":
            return self._loop(node)
        if node.op_type == "Scan":
            return self._scan(node)
        return self._without_elements(node) or self._evaluated(node) or [node]

    def _without_elements(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """Constants that replace a node whose results have no elements. The list is empty for other nodes."""
        from onnx.helper import tensor_dtype_to_np_dtype

        names = [name for name in node.output if name]
        empty = all(0 in self.shapes.get(name, ()) and self.types[name] for name in names)
        if node.domain or graphs(node) or not empty:
            return []
        self.changed = True
        kinds = [tensor_dtype_to_np_dtype(self.types[name]) for name in names]
        self.values |= {name: np.zeros(self.shapes[name], kind) for name, kind in zip(names, kinds, strict=True)}
        return [constant(name, self.values[name], node.name) for name in names]

    def _note_constant(self, node: onnx.NodeProto) -> None:
        from onnx.numpy_helper import to_array

        value = node.attribute[0].t
        if int(np.prod(value.dims)) <= MOST_ELEMENTS:
            self.values[node.output[0]] = to_array(value)

    def _evaluated(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """Constants that replace the node. The list is empty if the op is not in FOLDED, if an operand is not known, or
        if a result is too large."""
        operands = self._operands(node)
        outputs = [name for name in node.output if name]
        if node.domain or node.op_type not in FOLDED or operands is None or not self._is_small(node, outputs, operands):
            return []
        if node.op_type == "Slice":
            operands = _slice_starts(node, operands)
        results = self.run(node, operands)
        self.changed = True
        self.values.update(zip(outputs, results, strict=True))
        return [constant(name, value, node.name) for name, value in zip(outputs, results, strict=True)]

    def _operands(self, node: onnx.NodeProto) -> dict[str, np.ndarray] | None:
        names = [name for name in node.input if name]
        if node.op_type in OF_SHAPES and names[0] in self.shapes:
            return {names[0]: np.broadcast_to(np.zeros((), np.float32), self.shapes[names[0]])}
        return {name: self.values[name] for name in names} if all(name in self.values for name in names) else None

    def _is_small(self, node: onnx.NodeProto, outputs: Sequence[str], operands: dict[str, np.ndarray]) -> bool:
        """Whether each result has at most MOST_ELEMENTS. Results whose shapes are not known yet are not counted."""
        known = [self.shapes[name] for name in outputs if name in self.shapes]
        if node.op_type == "Range":
            start, limit, step = (float(operands[name].reshape(())) for name in node.input)
            known.append([int(abs(limit - start) / abs(step)) + 1 if step else MOST_ELEMENTS + 1])
        elif node.op_type in ("ConstantOfShape", "Expand"):
            known.append([int(size) for size in operands[node.input[-1]]])
        return all(int(np.prod(shape)) <= MOST_ELEMENTS for shape in known)

    def run(self, node: onnx.NodeProto, operands: dict[str, np.ndarray]) -> list[np.ndarray]:
        from onnx import ValueInfoProto
        from onnx.helper import make_graph, make_model
        from onnx.reference import ReferenceEvaluator

        inputs, outputs = ([ValueInfoProto(name=name) for name in dict.fromkeys(side) if name] for side in _ends(node))
        one = make_model(
            make_graph([node], "one", inputs, outputs), opset_imports=self.opsets, ir_version=self.ir_version
        )
        try:
            return [np.asarray(value) for value in ReferenceEvaluator(one).run(None, operands)]
        except Exception as error:  # the evaluator has no class for operands that an op does not take
            raise refused(node, f"ONNX's reference evaluator cannot compute it: {error}") from error

    def _branch(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        name = "then_branch" if bool(self.values[node.input[0]].reshape(())) else "else_branch"
        (graph,) = (attribute.g for attribute in node.attribute if attribute.name == name)
        self.changed = True
        nodes, results = self._body(graph, f"{first_result(node)}/", [])
        return nodes + self._named(results, node.output)

    def _loop(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """The nodes of all iterations, or the loop itself if the number of iterations is large or not known. A loop
        without a limit ends by its condition."""
        (graph,) = (attribute.g for attribute in node.attribute if attribute.name == "body")
        limit, going = node.input[0], node.input[1] if len(node.input) > 1 else ""
        if any(name and name not in self.values for name in (limit, going)):
            return [node]
        count = int(self.values[limit].reshape(())) if limit else MOST_NODES
        more = not going or bool(self.values[going].reshape(()))
        carried = list(node.input[2:])
        made: list[onnx.NodeProto] = []
        scanned: list[list[str]] = [[] for _ in graph.output[1 + len(carried) :]]
        too_many = limit and self.unrolled + count * len(graph.node) > MOST_NODES
        if too_many or (scanned and (count <= 0 or not more)):
            return [node]
        iteration = 0
        while iteration < count and more:
            self.unrolled += 1 + len(graph.node)
            if self.unrolled > MOST_NODES:
                return [node]
            own = f"{first_result(node)}/own {iteration}"  # no name of the body has this form
            first = [
                constant(f"{own}/number", np.array(iteration), node.name),
                constant(f"{own}/going", np.array(True), node.name),
            ]
            nodes, results = self._body(
                graph, f"{first_result(node)}/{iteration}/", [*(c.output[0] for c in first), *carried], first
            )
            if results[0] not in self.values:
                return [node]
            made += nodes
            more, carried = bool(self.values[results[0]].reshape(())), results[1 : 1 + len(carried)]
            for each, result in zip(scanned, results[1 + len(carried) :], strict=True):
                each.append(result)
            iteration += 1
        return made + self._results(node, carried, [(each, 0) for each in scanned])

    def _scan(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """The nodes of all steps, or the node itself if the number of steps is large or not known."""
        scan = _Scan(node)
        lengths = {
            self.shapes[name][axis] if self.shapes.get(name) else -1
            for name, axis in zip(scan.scanned, scan.axes, strict=True)
        }
        steps = max(lengths)
        if len(lengths) != 1 or steps < 1 or self.unrolled + steps * len(scan.graph.node) > MOST_NODES:
            return [node]
        self.unrolled += steps * len(scan.graph.node)
        carried = list(node.input[: scan.states])
        made: list[onnx.NodeProto] = []
        stacked: list[list[str]] = [[] for _ in scan.graph.output[scan.states :]]
        for step in range(steps):
            first, rows = scan.rows(step, steps)
            nodes, results = self._body(scan.graph, f"{first_result(node)}/{step}/", [*carried, *rows], first)
            made += nodes
            carried = results[: scan.states]
            for each, result in zip(stacked, results[scan.states :], strict=True):
                each.append(result)
        return made + self._results(node, carried, scan.in_order(stacked))

    def _results(
        self, node: onnx.NodeProto, states: Sequence[str], scanned: Sequence[tuple[Sequence[str], int]]
    ) -> list[onnx.NodeProto]:
        """Nodes that give the names of the node's results to the states at the end and to the values of all steps.
        `scanned` has the values of all steps, and the dimension along which they are stacked."""
        self.changed = True
        names = [*node.output, *[""] * (len(states) + len(scanned) - len(node.output))]
        pairs = zip(scanned, names[len(states) :], strict=True)
        stacked = [new for (parts, axis), name in pairs if name for new in self._stack(parts, axis, name)]
        return self._named(states, names[: len(states)]) + self.folded(stacked)

    def _body(
        self, graph: onnx.GraphProto, prefix: str, arguments: Sequence[str], first: Sequence[onnx.NodeProto] = ()
    ) -> tuple[list[onnx.NodeProto], list[str]]:
        """The nodes of a graph inside of a node, with `arguments` instead of its inputs, and the names of its results.

        All names that the graph defines get the prefix.
        """
        own = [value.name for value in graph.initializer] + [name for node in graph.node for name in node.output]
        names = {name: prefix + name for name in own if name}
        names |= dict(zip((value.name for value in graph.input), arguments, strict=True))
        from onnx.numpy_helper import to_array

        constants = [constant(names[value.name], to_array(value), graph.name) for value in graph.initializer]
        nodes = self.folded([*first, *constants, *(renamed(node, names) for node in graph.node)])
        return nodes, [names.get(value.name, value.name) for value in graph.output]

    def _stack(self, parts: Sequence[str], axis: int, name: str) -> list[onnx.NodeProto]:
        """Nodes that stack the results of all iterations along a new dimension."""
        from onnx.helper import make_node

        rows = [f"{name}/stacked {i}" for i in range(len(parts))]
        axes = constant(f"{name}/stacked", np.array([axis]), name)
        pairs = zip(parts, rows, strict=True)
        each = [make_node("Unsqueeze", [part, axes.output[0]], [row]) for part, row in pairs]
        return [axes, *each, make_node("Concat", rows, [name], axis=axis)]

    def _named(self, results: Sequence[str], names: Sequence[str]) -> list[onnx.NodeProto]:
        from onnx.helper import make_node

        pairs = zip(results, names, strict=True)
        return self.folded(make_node("Identity", [result], [name]) for result, name in pairs if name)


class _Scan:
    """The graph of a node Scan, the number of its states, and the dimensions and directions of its values."""

    def __init__(self, node: onnx.NodeProto) -> None:
        from onnx.helper import get_attribute_value

        given = {attribute.name: get_attribute_value(attribute) for attribute in node.attribute}
        self.graph, self.states = given["body"], len(node.input) - given["num_scan_inputs"]
        self.scanned, results = list(node.input[self.states :]), len(self.graph.output) - self.states
        self.axes = given.get("scan_input_axes", [0] * len(self.scanned))
        self._backwards = given.get("scan_input_directions", [0] * len(self.scanned))
        self._result_axes = given.get("scan_output_axes", [0] * results)
        self._turned = given.get("scan_output_directions", [0] * results)
        self._own = f"{first_result(node)}/own"  # no name of the body has this form

    def rows(self, step: int, steps: int) -> tuple[list[onnx.NodeProto], list[str]]:
        """Nodes that take the rows of a step out of the scanned values, and the names of these rows."""
        from onnx.helper import make_node

        places = [constant(f"{self._own} {step}/{n}", np.array(n), "") for n in {step, steps - 1 - step}]
        rows = [f"{self._own} {step}/row {i}" for i in range(len(self.scanned))]
        numbers = [f"{self._own} {step}/{steps - 1 - step if back else step}" for back in self._backwards]
        made = [
            make_node("Gather", [x, number], [row], axis=axis)
            for x, number, row, axis in zip(self.scanned, numbers, rows, self.axes, strict=True)
        ]
        return places + made, rows

    def in_order(self, stacked: Sequence[list[str]]) -> list[tuple[list[str], int]]:
        """The values of all steps as the results have them, and the dimension along which they are stacked."""
        ordered = [each[::-1] if turned else each for each, turned in zip(stacked, self._turned, strict=True)]
        return list(zip(ordered, self._result_axes, strict=True))


def slice_start(start: int, step: int, size: int) -> int:
    """The start of a Slice along a dimension of this size. With a negative step, one that lies before the first element
    is this element, as ONNX says. NumPy, and so ONNX's evaluator, takes no element then."""
    return max(start, -size) if step < 0 else start


def _slice_starts(node: onnx.NodeProto, operands: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The operands of a Slice, with other starts if it has steps."""
    x, starts, _, *names = node.input
    if len(names) < 2:
        return operands
    shape, given = operands[x].shape, operands[starts]
    axes = operands[names[0]] if names[0] else range(len(given))
    made = [slice_start(a, b, shape[axis]) for a, b, axis in zip(given, operands[names[1]], axes, strict=True)]
    return operands | {starts: np.array(made, given.dtype)}


def constant(name: str, value: np.ndarray, node: str) -> onnx.NodeProto:
    from onnx.helper import make_node
    from onnx.numpy_helper import from_array

    return make_node("Constant", [], [name], name=node, value=from_array(value))


def first_result(node: onnx.NodeProto) -> str:
    """The name of the first result that is not left out. Names of inner values begin with it."""
    return next(name for name in node.output if name)


def graphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs that a node has as attributes."""
    return [attribute.g for attribute in node.attribute if attribute.HasField("g")]


def with_inner(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """These nodes, and the nodes of the graphs inside of them."""
    for node in nodes:
        yield node
        for graph in graphs(node):
            yield from with_inner(graph.node)


def _ends(node: onnx.NodeProto) -> tuple[Sequence[str], Sequence[str]]:
    return node.input, node.output


def _static_shapes(graph: onnx.GraphProto) -> dict[str, list[int]]:
    found = {value.name: list(value.dims) for value in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind: Any = value.type.tensor_type
        if kind.HasField("shape") and all(d.HasField("dim_value") for d in kind.shape.dim):
            found[value.name] = [d.dim_value for d in kind.shape.dim]
    return found


def element_types(graph: onnx.GraphProto) -> dict[str, int]:
    """ONNX's numbers of the element types of all values; 0 for a type that is not known."""
    found = {v.name: v.type.tensor_type.elem_type for v in (*graph.input, *graph.value_info, *graph.output)}
    return found | {value.name: value.data_type for value in graph.initializer}


def renamed(node: onnx.NodeProto, names: dict[str, str]) -> onnx.NodeProto:
    """A copy of the node with other names of values, also inside of its graphs."""
    copy = type(node)()
    copy.CopyFrom(node)
    copy.input[:] = [names.get(name, name) for name in node.input]
    copy.output[:] = [names.get(name, name) for name in node.output]
    for graph in graphs(copy):
        inner = [renamed(one, names) for one in graph.node]
        del graph.node[:]
        graph.node.extend(inner)
        for value in graph.output:
            value.name = names.get(value.name, value.name)
    return copy


def _used(nodes: Sequence[onnx.NodeProto], wanted: set[str]) -> list[onnx.NodeProto]:
    """The nodes that compute the wanted values."""
    kept = []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted |= reads(node)
    return kept[::-1]


def reads(node: onnx.NodeProto) -> set[str]:
    """The names that a node reads, also inside of its graphs, and the names of the results there."""
    inside = [name for graph in graphs(node) for one in graph.node for name in reads(one)]
    return {*node.input, *inside, *(value.name for graph in graphs(node) for value in graph.output)}

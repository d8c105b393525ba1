"""Nodes of ONNX models that the host computes, such as NonMaxSuppression, whose values decide the sizes of its results.

All nodes that read a value of such a size are for the host, too. Nodes of the host that can run at one time are one
part: a small ONNX model. It crosses torch-mlir as a call, and becomes a custom call of StableHLO, which is a step of
the host in `splitting.py`. The sizes of its results may be open.
"""

from __future__ import annotations

from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.functions import block, main
from tt_torch.mlir.onnx_casts import outline_node
from tt_torch.mlir.onnx_corrections import refill, refused
from tt_torch.mlir.onnx_folding import first_result, graphs, with_inner
from tt_torch.mlir.onnx_loops import read_outside
from tt_torch.mlir.onnx_nodes import Facts, Nodes, full_name
from tt_torch.mlir.stablehlo.integer_rows import ONNX_MODEL, mark
from tt_torch.mlir.user_ops import CustomCall, is_call

if TYPE_CHECKING:
    import onnx

DOMAIN, OP = "tt_torch", "NodesOfHost"
INTEGERS = (2, 3, 4, 5, 6, 7, 9, 12, 13)  # ONNX's numbers of integers and booleans
BETWEEN = (*range(1, 8), *range(9, 17))  # of the types that values between host and device may have
BFLOAT16, COMPLEX = 16, (14, 15)  # ONNX Runtime takes and returns no arrays of them
SIZES = "values decide the sizes of its results"
SEED = "its numbers are those of a certain generator"
FILES = "the device decodes no files"
OWN_NAME = "/of the host"  # the end of the name that a part gives a result
LACKS = "TTNN has no op for it"


@dataclass(frozen=True)
class Part:
    """Nodes of the host as a model. If `by_reference` is true, ONNX's reference evaluator runs it instead of ONNX
    Runtime."""

    model: bytes
    by_reference: bool
    reason: str


def _in_training(node: Nodes) -> str:
    training = node.value(2)
    return SEED if node.operand(2) and (training is None or bool(training.reshape(()))) else ""


def _with_seed(node: Nodes) -> str:
    return SEED if "seed" in node.given else ""


def _of_open_size(node: Nodes) -> str:
    """Compress takes elements from known places if its condition is known."""
    return "" if node.node.op_type == "Compress" and node.value(1) is not None else SIZES


SIZES_OF_VALUES = ("Compress", "NonMaxSuppression", "NonZero", "Unique")  # unless fold() has computed them
# Ops of the domain ai.onnx.ml whose types ONNX infers.
OF_FEATURES = "CategoryMapper LabelEncoder LinearClassifier OneHotEncoder SVMClassifier TreeEnsemble".split()
# Taken out before nodes are rewritten, because the rules for other nodes want known sizes.
EARLY: dict[str, Callable[[Nodes], str]] = {
    **dict.fromkeys(SIZES_OF_VALUES, _of_open_size),
    **dict.fromkeys(("Bernoulli", "RandomNormalLike", "RandomUniformLike"), _with_seed),
    "Dropout": _in_training,
    "ImageDecoder": lambda node: FILES,
}
# Taken out if no rule has rewritten them.
LATE: dict[str, Callable[[Nodes], str]] = {
    **dict.fromkeys(("TfIdfVectorizer", *(f"ai.onnx.ml.{name}" for name in OF_FEATURES)), lambda node: LACKS),
}


def take_parts_out(
    model: onnx.ModelProto,
    reasons: Mapping[str, Callable[[Nodes], str]],
    deciding: Mapping[str, Sequence[int]],
    parts: list[Part],
) -> None:
    """Replaces the nodes of the host by nodes of our domain, one for each part, and adds the parts to `parts`.

    `reasons` has functions that say why a node is for the host, or "". `deciding` has the positions of the operands
    that decide sizes. Raises UnsupportedOpError for a value between host and device without a known type.
    """
    from onnx.helper import make_operatorsetid
    from onnx.shape_inference import infer_shapes

    if not any(full_name(node) in reasons for node in with_inner(model.graph.node)):
        return
    typed = infer_shapes(model, data_prop=True)
    chosen = _Choice(typed, reasons, deciding)
    nodes: list[onnx.NodeProto] = []
    for stage in sorted({*chosen.nodes, *chosen.members}):
        nodes += chosen.nodes.get(stage, [])
        if stage in chosen.members and (made := _part(stage, chosen, typed)).results:
            model.graph.value_info.extend(made.results)
            nodes += [made.call(len(parts)), *made.names()]
            parts.append(made.part)
    refill(model.graph.node, nodes)
    if chosen.members and all(one.domain != DOMAIN for one in model.opset_import):
        model.opset_import.append(make_operatorsetid(DOMAIN, 1))


class _Choice:
    """The nodes in stages. In each stage, the device runs `nodes`, and then the host runs `members`."""

    def __init__(
        self,
        model: onnx.ModelProto,
        reasons: Mapping[str, Callable[[Nodes], str]],
        deciding: Mapping[str, Sequence[int]],
    ) -> None:
        self.facts, self.reasons, self.deciding = Facts(model), reasons, deciding
        self.nodes = defaultdict[int, list["onnx.NodeProto"]](list)
        self.members = defaultdict[int, list["onnx.NodeProto"]](list)
        self._on_host: dict[str, int] = {}  # values of the host, and their stages
        self._of_sizes: set[str] = set()  # values of the host that were made of values with open sizes
        self._after: dict[str, int] = {}  # the number of stages that must be over before a value is there
        for node in model.graph.node:
            self._put(node)

    def _put(self, node: onnx.NodeProto) -> None:
        operands = _operands(node)
        if not self._is_for_host(node, operands):
            after = max([0, *(self._on_host.get(x, self._after.get(x, 0) - 1) + 1 for x in operands)])
            self._after |= dict.fromkeys(node.output, after)
            self.nodes[after].append(node)
            return
        stage = max([0, *(self._on_host.get(x, self._after.get(x, 0)) for x in operands)])
        self._on_host |= {name: stage for name in node.output if name}
        self.members[stage].append(node)

    def _is_for_host(self, node: onnx.NodeProto, operands: set[str]) -> bool:
        if any(_reason(each, self.facts, self.reasons) for each in with_inner([node])):
            return True
        places = self.deciding.get(node.op_type, ())
        of_values = [node.input[i] for i in places if i < len(node.input)]
        is_open = any(x in self._on_host and x not in self.facts.shapes for x in operands)
        values = [x for x in operands if x not in self.facts.values]
        small = bool(values) and all(x in self._of_sizes and self.facts.types.get(x) in INTEGERS for x in values)
        if is_open or small:
            self._of_sizes.update(node.output)
        return is_open or small or any(x in self._on_host for x in of_values)


def _reason(node: onnx.NodeProto, facts: Facts, reasons: Mapping[str, Callable[[Nodes], str]]) -> str:
    return reasons[full_name(node)](Nodes(node, facts)) if full_name(node) in reasons else ""


@dataclass(frozen=True)
class _Made:
    part: Part
    inputs: list[str]
    results: list[onnx.ValueInfoProto]
    name: str

    def call(self, number: int) -> onnx.NodeProto:
        from onnx.helper import make_node

        results = [value.name for value in self.results]
        return make_node(OP, self.inputs, results, self.name, domain=DOMAIN, number=number)

    def names(self) -> list[onnx.NodeProto]:
        """The results get their names by an Identity, because ONNX does not read the type of a result of the model."""
        from onnx.helper import make_node

        return [make_node("Identity", [x.name], [x.name.removesuffix(OWN_NAME)], self.name) for x in self.results]


def _part(stage: int, chosen: _Choice, model: onnx.ModelProto) -> _Made:
    """The part of a stage. Constants are constants of its model."""
    from onnx.helper import make_graph, make_model, make_tensor_value_info
    from onnx.numpy_helper import from_array

    facts, members = chosen.facts, chosen.members[stage]
    others = [*chosen.nodes.values(), *(each for i, each in chosen.members.items() if i != stage)]
    outside = {x for each in others for node in each for x in _operands(node)}
    outside.update(value.name for value in model.graph.output)
    own = [name for node in members for name in node.output if name]
    read = sorted({x for node in members for x in _operands(node)} - {*own})
    constants = [from_array(np.asarray(facts.values[x]), x) for x in read if x in facts.values]
    inputs, results = [x for x in read if x not in facts.values], [x for x in own if x in outside]
    for name in (*inputs, *results):
        if facts.types.get(name) not in BETWEEN:
            what = f"{name!r}, which crosses between host and device, is no tensor of a type that PyTorch has"
            raise refused(members[0], what)
    ends = [[make_tensor_value_info(x, facts.types[x], None) for x in side] for side in (inputs, results)]
    graph = make_graph(members, "part", ends[0], ends[1], constants)
    opsets = [one for one in model.opset_import if one.domain != DOMAIN]
    made = make_model(graph, opset_imports=opsets, ir_version=model.ir_version)
    kinds = {facts.types[x] for x in (*inputs, *results)}
    has_seed = SEED in [_reason(x, facts, chosen.reasons) for x in with_inner(members)]
    by_reference = has_seed or bool(kinds & {BFLOAT16, *COMPLEX}) or not _has_ops(made)
    if by_reference and not _has_reference(made):
        raise refused(members[0], "neither ONNX Runtime nor ONNX's reference evaluator has its op or its form")
    part = Part(made.SerializeToString(), by_reference, _told(members, facts, chosen.reasons))
    return _Made(part, inputs, [_declared(x, model, members) for x in results], _name(members, chosen))


def _told(members: Sequence[onnx.NodeProto], facts: Facts, reasons: Mapping[str, Callable[[Nodes], str]]) -> str:
    """The reason for messages. It names the other ops of the part, too, which read values of open sizes."""
    why = {x.op_type: found for x in with_inner(members) if (found := _reason(x, facts, reasons))}
    others = sorted({node.op_type for node in members} - why.keys())
    told = "; ".join(f"{op}: {reason}" for op, reason in why.items())
    return f"{told}; with {', '.join(others)}, which read them" if others else told


def _name(members: Sequence[onnx.NodeProto], chosen: _Choice) -> str:
    """The name of the first node that has a reason of its own, for messages."""
    named = (node.name for node in with_inner(members) if _reason(node, chosen.facts, chosen.reasons))
    return next(filter(None, named), first_result(members[0]))


def _declared(name: str, model: onnx.ModelProto, members: Sequence[onnx.NodeProto]) -> onnx.ValueInfoProto:
    """The type of a result of the host under the name that the part gives it."""
    found = next(x for x in (*model.graph.value_info, *model.graph.output) if x.name == name)
    if not found.type.tensor_type.HasField("shape"):
        raise refused(members[0], f"ONNX does not know how many dimensions {name!r} has, which the host computes")
    made: onnx.ValueInfoProto = type(found)(name=name + OWN_NAME)
    made.type.CopyFrom(found.type)
    return made


def _has_ops(model: onnx.ModelProto) -> bool:
    """Whether ONNX Runtime has all ops of a model, for these types."""
    from onnxruntime import InferenceSession
    from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, InvalidGraph, NotImplemented

    try:
        InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    except (Fail, InvalidArgument, InvalidGraph, NotImplemented):
        return False
    return True


def _has_reference(model: onnx.ModelProto) -> bool:
    """Whether ONNX's reference evaluator has all ops of a model, in their forms. The caller refuses other models."""
    from onnx.reference import ReferenceEvaluator

    try:
        ReferenceEvaluator(model)
    except (RuntimeError, TypeError):  # for an unknown op or attribute, and for an op that it cannot make
        return False
    return True


def _operands(node: onnx.NodeProto) -> set[str]:
    """The values from outside that a node reads, also inside of its graphs."""
    return {name for name in (*node.input, *(x for graph in graphs(node) for x in read_outside(graph))) if name}


def outline_parts(module: ir.Module) -> None:
    """Makes calls of the parts of an imported model."""
    for op in [op.operation for op in block(main(module)).operations]:
        if op.name == "torch.operator" and ods.attr(op, "name") == f"onnx.{OP}":
            number = op.attributes["torch.onnx.number"].value
            outline_node(op, CustomCall(ONNX_MODEL, {"backend_config": str(number)}), f"part{number}", module)


def write_parts(module: ir.Module, parts: Sequence[Part]) -> None:
    """Writes the models of parts into their calls, and notes that the host computes these."""
    for op in [op.operation for op in block(main(module)).operations]:
        if is_call(op, ONNX_MODEL):
            part = parts[int(ods.attr(op, "backend_config"))]
            op.attributes["tt.model"] = ir.StringAttr.get(b64encode(part.model).decode(), module.context)
            op.attributes["tt.by_reference"] = ir.BoolAttr.get(part.by_reference, module.context)
            mark(op, part.reason)

"""Prepares an ONNX model before its nodes are corrected for torch-mlir: it gets plain nodes with fixed shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tt_torch.errors import CompileError
from tt_torch.mlir.onnx_branches import branches_as_loops
from tt_torch.mlir.onnx_corrections import refill, refused
from tt_torch.mlir.onnx_folding import OF_SHAPES, constant, fold, reads, with_inner
from tt_torch.mlir.onnx_host import EARLY, OP, SIZES_OF_VALUES, Part, take_parts_out
from tt_torch.mlir.onnx_loops import is_on_values
from tt_torch.mlir.onnx_places import OLD_NEAREST
from tt_torch.mlir.onnx_rewrites import OLD_RULES, rewrite

if TYPE_CHECKING:
    import onnx

OLDEST_OPSET = 15  # torch-mlir has rules for the forms of this opset and of later ones
PLACES_ARE_CHOSEN = 11  # the first opset in which attributes of Resize say where its elements are
# ONNX's own definition replaces these ops, because torch-mlir has no rule for them, or has rules only for some forms.
EXPANDED = (
    "AffineGrid Attention CausalConvWithState CenterCropPad DynamicQuantizeLinear FlexAttention LinearAttention "
    "NegativeLogLikelihoodLoss RMSNormalization RotaryEmbedding SoftmaxCrossEntropyLoss Swish"
).split()
DOMAINS = ("", "ai.onnx.preview")  # to which these ops belong
# The operands that decide shapes, axes or which nodes run, by their numbers. They must be known while compiling.
_REDUCTIONS = [f"Reduce{name}" for name in "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()]
DECIDING: dict[str, Sequence[int]] = {
    **dict.fromkeys(_REDUCTIONS, (1,)),
    **dict.fromkeys("Reshape Expand Tile Squeeze Unsqueeze Split TopK OneHot CumSum CumProd Trilu".split(), (1,)),
    **dict.fromkeys("CenterCropPad AffineGrid Upsample SplitToSequence SequenceAt".split(), (1,)),
    **dict.fromkeys("ConstantOfShape BlackmanWindow HammingWindow HannWindow If".split(), (0,)),
    **dict.fromkeys("GRU LSTM RNN".split(), (4,)),
    **dict.fromkeys("Range MelWeightMatrix".split(), range(5)),
    "Slice": range(1, 5), "Pad": (1, 3), "Resize": (1, 2, 3), "DFT": (1, 2), "STFT": (1, 3), "Col2Im": (1, 2),
    "MaxUnpool": (2,), "Loop": (0, 1), "Dropout": (2,), "SequenceInsert": (2,), "SequenceErase": (1,),
}  # fmt: skip


def prepared(model: onnx.ModelProto, constants: Mapping[str, np.ndarray]) -> tuple[onnx.ModelProto, list[Part]]:
    """A copy of a valid model without functions, and without computations that depend on nothing but constants; and
    what the host computes.

    `constants` gives values for some inputs, and the copy does not have these inputs. Raises CompileError for a model
    that is not valid, and UnsupportedOpError if an input that is no constant decides a shape.
    """
    copy, parts = _plain(model, constants), list[Part]()
    fold(copy)
    take_parts_out(copy, EARLY, DECIDING, parts)
    branches_as_loops(copy)
    for name, node in deciding(copy.graph, copy.graph.node).items():
        detail = f"the input {name!r} decides a shape, an axis or a branch; give its value by the argument `constants`"
        raise refused(node, detail)
    return copy, parts


def deciding_inputs(model: onnx.ModelProto) -> list[str]:
    """The names of the inputs that decide shapes, axes, branches or numbers of iterations."""
    plain = _plain(model, {})
    return list(deciding(plain.graph, list(with_inner(plain.graph.node))))


def _plain(model: onnx.ModelProto, constants: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    _check(model)
    return _expanded(_upgraded(_of_main_domain(_bound(model, constants))))


def deciding(graph: onnx.GraphProto, nodes: Sequence[onnx.NodeProto]) -> dict[str, onnx.NodeProto]:
    """The inputs from whose values operands in DECIDING are computed, each with a node that has the operand. The bodies
    of loops that stay are models of their own, which are prepared later."""
    producers = {name: node for node in nodes for name in node.output if name}
    given = {value.name for value in graph.initializer}
    inputs = {value.name for value in graph.input} - given
    found: dict[str, onnx.NodeProto] = {}
    for node in nodes:
        numbers = () if is_on_values(node) else DECIDING.get(node.op_type, ())
        operands = [node.input[i] for i in numbers if i < len(node.input)]
        for name in _origins(operands, producers) & inputs:
            found.setdefault(name, node)
    return {value.name: found[value.name] for value in graph.input if value.name in found}


def _origins(names: Sequence[str], producers: Mapping[str, onnx.NodeProto]) -> set[str]:
    """`names`, and all names whose values are needed to compute them."""
    seen: set[str] = set()
    waiting = [name for name in names if name]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in producers and producers[name].op_type not in (*OF_SHAPES, *SIZES_OF_VALUES, OP):
            waiting.extend(reads(producers[name]))
    return seen


def _check(model: onnx.ModelProto) -> None:
    """Raises CompileError for a model that is not valid."""
    from onnx.checker import ValidationError, check_model

    copy = type(model)()
    copy.CopyFrom(model)
    for value in copy.graph.output:  # the checker wants a shape, but it can be inferred
        if value.type.WhichOneof("value") in (None, "tensor_type"):
            value.type.tensor_type.elem_type = value.type.tensor_type.elem_type or 1
            value.type.tensor_type.shape.SetInParent()
    try:
        check_model(copy)
    except ValidationError as error:
        raise CompileError(f"the ONNX model is not valid: {error}") from error


def _bound(model: onnx.ModelProto, constants: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """A copy of the model in which some inputs are constants."""
    copy = type(model)()
    copy.CopyFrom(model)
    kept = [value for value in copy.graph.input if value.name not in constants]
    refill(copy.graph.input, kept)
    refill(copy.graph.node, [*(constant(name, value, name) for name, value in constants.items()), *copy.graph.node])
    return copy


def _of_main_domain(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model, which says in which opset plain nodes are. `model` is changed. It may have only nodes of other
    domains, and these are written as plain nodes later."""
    from onnx.helper import make_operatorsetid

    if all(one.domain for one in model.opset_import):
        model.opset_import.append(make_operatorsetid("", OLDEST_OPSET))
    return model


def _upgraded(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model in an opset whose ops torch-mlir knows. `model` is changed. Raises CompileError if this fails."""
    from onnx.version_converter import convert_version

    opsets = [one.version for one in model.opset_import if not one.domain and one.version < OLDEST_OPSET]
    if not opsets:
        return model
    rewrite(model, OLD_RULES)
    try:
        made = convert_version(model, OLDEST_OPSET)
    except RuntimeError as error:  # it has no class of its own
        raise CompileError(f"the ONNX model cannot be converted to opset {OLDEST_OPSET}: {error}") from error
    if [value.type for value in made.graph.input] != [value.type for value in model.graph.input]:
        raise CompileError(
            f"the conversion of the ONNX model to opset {OLDEST_OPSET} changes its inputs, as that of Scan 8"
        )
    if opsets[0] < PLACES_ARE_CHOSEN:
        _choose_places(made)
    return made


def _choose_places(model: onnx.ModelProto) -> None:
    """Says in each Resize where its elements were before opset 11. The converter leaves this to newer defaults."""
    from onnx.helper import make_attribute

    for node in with_inner(model.graph.node):
        if node.op_type == "Resize":
            node.attribute.append(make_attribute("coordinate_transformation_mode", "asymmetric"))
            node.attribute.append(make_attribute("nearest_mode", OLD_NEAREST))


def _expanded(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model, in which nodes replace the calls of its own functions and the ops in EXPANDED. Raises CompileError."""
    from onnx.helper import make_tensor_value_info
    from onnx.inliner import inline_local_functions, inline_selected_functions
    from onnx.shape_inference import infer_shapes

    if model.functions:
        model = inline_local_functions(model)
    if not any(node.op_type in EXPANDED for node in with_inner(model.graph.node)):
        return model
    typed = infer_shapes(model)
    # The inliner asks for the types of all operands. Some are initializers. The name of an operand that is left out
    # is "".
    typed.graph.value_info.add(name="").type.tensor_type.SetInParent()
    given = {value.name for value in typed.graph.input}
    values = [value for value in typed.graph.initializer if value.name not in given]
    typed.graph.value_info.extend(make_tensor_value_info(one.name, one.data_type, one.dims) for one in values)
    _write_defaults(typed)
    chosen = [(domain, name) for name in EXPANDED for domain in DOMAINS]
    try:
        return inline_selected_functions(typed, chosen, False, True)
    except RuntimeError as error:
        raise CompileError(f"ONNX cannot write an op of the model as its function: {error}") from error


def _write_defaults(model: onnx.ModelProto) -> None:
    """Writes the default values of attributes in the nodes that become functions, which the inliner does not do."""
    from onnx.defs import get_schema

    opsets = {one.domain: one.version for one in model.opset_import}
    for node in with_inner(model.graph.node):
        if node.op_type in EXPANDED and node.domain in DOMAINS:
            schema = get_schema(node.op_type, opsets[node.domain], node.domain)
            own = {attribute.name for attribute in node.attribute}
            defaults = [one.default_value for name, one in schema.attributes.items() if name not in own]
            node.attribute.extend(value for value in defaults if value.name)

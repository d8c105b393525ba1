"""Nodes on sequences: results are those of ONNX Runtime, or the node is refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_programs import compared, model_of

from tt_torch.driver.onnx import compile_onnx
from tt_torch.errors import UnsupportedOpError

node = helper.make_node
X = np.random.default_rng(0).standard_normal((5, 3)).astype("float32")


def value(name: str, array: object) -> onnx.NodeProto:
    return node("Constant", [], [name], value=onnx.numpy_helper.from_array(np.array(array)))


def test_sequences_are_built_and_read() -> None:
    """Elements are inserted at the start, at the end and at a place counted from the end. Some are erased."""
    nodes = [
        value("first", 0), value("last", -1), value("second", 1),
        node("SequenceEmpty", [], ["none"], dtype=TensorProto.FLOAT), node("SequenceInsert", ["none", "x"], ["a"]),
        node("SequenceInsert", ["a", "y", "first"], ["b"]), node("SequenceInsert", ["b", "z", "last"], ["c"]),
        node("SequenceErase", ["c", "second"], ["d"]), node("SequenceErase", ["c"], ["e"]),
        *(node("SequenceAt", [s, p], [f"{s} {p}"]) for s in "cde" for p in ("first", "last", "second")),
        node("SequenceLength", ["c"], ["count"]), node("SequenceLength", ["none"], ["nothing"]),
        node("SequenceConstruct", ["x", "y"], ["f"]), node("ConcatFromSequence", ["f"], ["rows"], axis=0),
        node("ConcatFromSequence", ["f"], ["stack"], axis=-1, new_axis=1),
    ]  # fmt: skip
    results = [name for one in nodes for name in one.output if " " in name or name in ("count", "rows", "stack")]
    compared(nodes, {"x": X, "y": -X, "z": X * 2}, results=[*results, "nothing"])


def test_a_tensor_is_split() -> None:
    nodes = [value("two", 2), value("sizes", [1, 4]), value("place", -1)]
    forms = {
        "rows": ([], {"axis": -1, "keepdims": 0}),
        "kept": ([], {}),
        "twos": (["two"], {}),
        "given": (["sizes"], {}),
    }
    for name, (sizes, given) in forms.items():
        nodes.append(node("SplitToSequence", ["x", *sizes], [name], **given))
        nodes.append(node("SequenceAt", [name, "place"], [f"{name}!"]))
        nodes.append(node("SequenceLength", [name], [f"{name}#"]))
    compared(nodes, {"x": X}, results=[f"{name}{end}" for name in forms for end in "!#"])


@pytest.mark.parametrize("place", [2, -3])
def test_a_place_that_is_not_in_a_sequence_is_refused(place: int) -> None:
    nodes = [value("p", place), node("SequenceConstruct", ["x", "x"], ["s"]), node("SequenceAt", ["s", "p"], ["y"])]
    with pytest.raises(UnsupportedOpError, match=f"there is no place {place} in a sequence of length 2"):
        compile_onnx(model_of(nodes, {"x": X}, ["y"]))


def test_a_sequence_whose_elements_are_not_known_is_refused() -> None:
    nodes = [
        node("SequenceConstruct", ["x"], ["s"]),
        node("Identity", ["s"], ["t"]),
        node("SequenceLength", ["t"], ["y"]),
    ]
    with pytest.raises(UnsupportedOpError, match="the elements of its sequence are not known while compiling"):
        compile_onnx(model_of(nodes, {"x": X}, ["y"]))

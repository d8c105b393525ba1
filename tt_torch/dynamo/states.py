"""States: inputs of a graph that it writes to, such as caches, statistics of batch norm and parameters in a step.

AOTAutograd makes a graph functional. The new value of an input becomes one more output, and AOTAutograd copies it into
the input after the call. For a state, the program writes the new value into the input's own memory instead, and returns
the input.
"""

from __future__ import annotations

from collections import Counter

from torch.fx import GraphModule, Node

from tt_torch.dynamo.calls import Interface
from tt_torch.torch_private.aot import input_of_new_value

UPDATES = "tt_updates"  # in the `meta` of the node that returns the outputs


def written_inputs(gm: GraphModule) -> dict[int, int]:
    """For each output that is the new value of an input: the position of the input."""
    placeholders = gm.graph.find_nodes(op="placeholder")
    positions = {node.meta["desc"]: i for i, node in enumerate(placeholders) if "desc" in node.meta}
    (output,) = gm.graph.find_nodes(op="output")
    said = [input_of_new_value(made) for made in output.meta.get("desc", ())]
    return {k: positions[given] for k, given in enumerate(said) if given in positions}


def states_of(written: dict[int, int], interface: Interface, program: GraphModule) -> dict[int, int]:
    """For each result of the program that is the new value of an input of the program: the position of this input.

    States that the program cannot update in place are left out. The input and its new value must have the same form
    without gaps in memory, and no other output may be a part of this result.
    """
    if interface.complex_inputs or interface.complex_outputs:
        return {}
    tensors = [k for k, value in enumerate(interface.outputs) if value is ...]
    places = dict(zip(tensors, interface.places, strict=True))
    readers = Counter(p if isinstance(p, int) else p.result for p in interface.places)
    inputs = {given: i for i, given in enumerate(interface.inputs)}
    placeholders = program.graph.find_nodes(op="placeholder")
    (output,) = program.graph.find_nodes(op="output")
    found = {}
    for k, given in written.items():
        result, i = places.get(k), inputs.get(given)
        if not isinstance(result, int) or i is None or readers[result] != 1 or result in interface.strides:
            continue
        if _form(placeholders[i]) == _form(output.args[0][result]):
            found[result] = i
    return found


def _form(node: Node) -> tuple[object, ...]:
    value = node.meta["val"]
    strides = [stride for size, stride in zip(value.shape, value.stride(), strict=True) if size != 1]
    return value.dtype, value.shape, strides, value.device


def mark(program: GraphModule, updates: dict[int, int]) -> None:
    """Notes the states of a program. Its pieces have no states, because their results go to other pieces."""
    (output,) = program.graph.find_nodes(op="output")
    output.meta[UPDATES] = updates


def updates_of(program: GraphModule) -> dict[int, int]:
    """The input for each result of a program that is the new value of a state."""
    (output,) = program.graph.find_nodes(op="output")
    return output.meta.get(UPDATES, {})

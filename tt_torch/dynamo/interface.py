"""The interface between a graph and its program.

A program only takes and returns tensors. A graph also takes sizes, draws random seeds, and returns None and numbers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

import torch
from torch.fx import GraphModule, Node

from tt_torch.dynamo.calls import Interface
from tt_torch.dynamo.complex_pairs import has_complex, is_complex, to_pairs
from tt_torch.dynamo.decompositions.random import SEED
from tt_torch.dynamo.mesh_ops import AXES
from tt_torch.dynamo.shared_memory import return_once
from tt_torch.dynamo.types import Decompositions, Result
from tt_torch.torch_private.aot import PlainAOTInput
from tt_torch.torch_private.tensors import is_non_overlapping_and_dense_or_false


def real_tensors_only(gm: GraphModule, decompositions: Decompositions, seen: int) -> tuple[GraphModule, Interface]:
    """The graph with only real tensors at its border, and its interface. `gm` itself is changed, too.

    The user gets the first `seen` outputs. If some of these outputs share memory, the results share memory, too.
    """
    program, interface = gm, _tensors_only(gm)
    interface.places = return_once(program, sum(value is ... for value in interface.outputs[:seen]))
    (output,) = (n for n in program.graph.nodes if n.op == "output")
    values = [n.meta["val"] for n in output.args[0]]
    scattered = [i for i, v in enumerate(values) if v.numel() and not is_non_overlapping_and_dense_or_false(v)]
    interface.strides = {i: values[i].stride() for i in scattered}
    if has_complex(program):
        inputs = [n for n in program.graph.nodes if n.op == "placeholder"]
        (output,) = (n for n in program.graph.nodes if n.op == "output")
        interface.complex_inputs = [i for i, n in enumerate(inputs) if is_complex(n.meta["val"])]
        interface.complex_outputs = [i for i, n in enumerate(output.args[0]) if is_complex(n.meta["val"])]
        program = to_pairs(program, decompositions)
        (output,) = (n for n in program.graph.nodes if n.op == "output")
        # The formula of an op for pairs may give other strides than the op. Results in this memory rely on the op's.
        moved = [i for i in interface.complex_outputs if output.args[0][i].meta["val"].stride() != _pair(values[i])]
        interface.strides |= {i: values[i].stride() for i in moved}
    return program, interface


def _pair(value: torch.Tensor) -> tuple[int, ...]:
    """The strides of a tensor of complex numbers as pairs."""
    return (*(2 * stride for stride in value.stride()), 1)


def _tensors_only(gm: GraphModule) -> Interface:
    """Leaves only tensors at the border of the graph.

    The graph has been traced for given sizes, so the placeholders of sizes have no readers.
    """
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    (output,) = (n for n in gm.graph.nodes if n.op == "output")
    given = [i for i, n in enumerate(placeholders) if is_tensor(n)]
    returned = [... if is_tensor(v) else v for v in output.args[0]]
    seeds: list[torch.device] = []
    draws = bool(gm.graph.find_nodes(op="call_function", target=SEED))
    if draws or len(given) < len(placeholders) or any(v is not ... for v in returned):
        output.args = (tuple(v for v in output.args[0] if is_tensor(v)),)
        gm.graph.eliminate_dead_code()
        for i in set(range(len(placeholders))) - set(given):
            _replace_by_value(gm.graph, placeholders[i])
        seeds = _seeds_to_input(gm.graph)
        gm.recompile()
    return Interface(given, [_constant(v) for v in returned], seeds, [], [], {}, [])


def is_tensor(value: object) -> bool:
    """Whether a value is a node whose result is a tensor."""
    return isinstance(value, Node) and isinstance(value.meta.get("val"), torch.Tensor)


def _constant(value: Result) -> Result:
    return value.meta["val"] if isinstance(value, Node) else value


def _replace_by_value(graph: torch.fx.Graph, placeholder: Node) -> None:
    for user in list(placeholder.users):
        user.args = torch.fx.node.map_arg(user.args, lambda n: n.meta["val"] if n is placeholder else n)
        user.kwargs = torch.fx.node.map_arg(user.kwargs, lambda n: n.meta["val"] if n is placeholder else n)
    graph.erase_node(placeholder)


_KEY = r"""\[('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]"""  # a name as Python writes it, in brackets


def source(placeholder: Node) -> str:
    """The user's name of an input of a captured graph, like `x[0]`. An input in `**kwargs` has its own name."""
    argument = placeholder.meta.get("grapharg")
    return re.sub(r"^L\['(?:kwargs'\]\[')?(\w+)'\]", r"\1", argument.source.name) if argument else placeholder.name


def module_path(node: Node) -> str:
    """The path of the innermost module that calls the op, as in `named_modules()`; "" for the model itself."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    paths = [path for path, _ in stack.values()]
    path = re.sub(r"^[LG]\['\w+'\]\.?", "", paths[-1]) if paths else ""
    return re.sub(f"_modules{_KEY}", lambda key: ast.literal_eval(key[1]), path)


def weight_name(placeholder: Node) -> str:
    """The name of a parameter or buffer, as in `named_parameters()`. It is taken from the source of the input."""
    given = str(placeholder.meta.get("source", ""))
    return ".".join(map(ast.literal_eval, re.findall(f"_(?:modules|parameters|buffers){_KEY}", given))) or given


def layer_names(graph: torch.fx.Graph) -> set[str]:
    """The paths of the modules that call a graph's ops, and the names of its inputs, including parameters."""
    inputs = {weight_name(node) for node in graph.find_nodes(op="placeholder")}
    return inputs | {module_path(node) for node in graph.nodes if node.op == "call_function"}


def name_inputs(graph: GraphModule, names: Sequence[str]) -> None:
    """Writes the names into `meta["source"]` of the placeholders, for messages."""
    for node in graph.graph.nodes:
        if node.op == "placeholder" and isinstance(descriptor := node.meta.get("desc"), PlainAOTInput):
            node.meta["source"] = names[descriptor.idx]


def _seeds_to_input(graph: torch.fx.Graph) -> list[torch.device]:
    """Turns each seed into a row of a new last input. Returns the devices whose generators give the seeds."""
    nodes = graph.find_nodes(op="call_function", target=SEED)
    if not nodes:
        return []
    with graph.inserting_before(next(n for n in graph.nodes if n.op != "placeholder")):
        seeds = graph.placeholder("seeds")
    with nodes[0].meta["val"].fake_mode:
        seeds.meta["val"] = torch.empty(len(nodes), 2, dtype=torch.int32, device="cpu")
    seeds.meta[AXES] = frozenset()  # all chips of a mesh get the same seeds
    for row, node in enumerate(nodes):
        with graph.inserting_before(node):
            seed = graph.call_function(torch.ops.aten.select.int, (seeds, 0, row))
        seed.meta = node.meta
        node.replace_all_uses_with(seed)
        graph.erase_node(node)
    return [node.meta["val"].device for node in nodes]

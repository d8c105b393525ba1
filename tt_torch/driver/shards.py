"""Graphs with DTensors: one program that all chips of a mesh run, each with its part of the tensors.

Dynamo captures what the user's code does with DTensors. AOTAutograd then traces what one chip does, collectives
included, and passes the parts of one chip to its graph; at a call, these are tensors with a value per chip.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from tt_torch.config import BackendOptions, CompileDepth, CompilerConfig
from tt_torch.driver.devices import Device
from tt_torch.driver.executor import CompiledProgram, Executor
from tt_torch.driver.overlaps import eager_if_overlapping
from tt_torch.driver.partition import wholly_on_host
from tt_torch.dynamo.decompositions.random import draw_for_one_chip
from tt_torch.dynamo.eager_views import EagerViews, gets_gradients
from tt_torch.dynamo.input_forms import without_form_changes
from tt_torch.dynamo.mesh_ops import ALWAYS, AXES
from tt_torch.dynamo.passes.rewriting import copied, user_line
from tt_torch.dynamo.types import Argument, Function, Result
from tt_torch.errors import CollectiveError, ConfigError, MeshError, UnsupportedOpError
from tt_torch.torch_private.aot import position_of_input
from tt_torch.torch_private.distributed import one_process
from tt_torch.torch_private.ops import HigherOrderOperator

Mesh = tuple[int, int]
WITH_GRADIENTS = (
    "the graph writes to an input, whose new value has gradients, and PyTorch's capture of DTensors has none for it"
)


def has_shards(inputs: Sequence[object]) -> bool:
    """Whether an input of a captured graph is a DTensor, or a tensor with a value per chip."""
    door = one_process()
    return bool(door) and any(isinstance(x, (door.DTensor, door.LocalTensor)) for x in inputs)


def refuse_exchange(gm: GraphModule, inputs: Sequence[object]) -> None:
    """Raises CollectiveError for a collective in a graph of plain tensors, which eager PyTorch refuses, too."""
    exchanges = [n for n in gm.graph.nodes if str(n.target).startswith("_c10d_functional.")]
    if one_process() and exchanges and not has_shards(inputs):
        name, line = str(exchanges[0].target).partition(".")[2], user_line(exchanges[0])
        raise CollectiveError(f"{name} of a plain tensor, which all chips of the mesh have, at {line}")


def with_equal_parts(x: torch.Tensor) -> torch.Tensor:
    """Returns `x`. Raises ShardingError for a DTensor with parts of different sizes."""
    door = one_process()
    if door and isinstance(x, door.DTensor):
        door.require_equal_parts_of(x)
    return x


def refuse_calls_of_graphs(graph: Graph) -> None:
    """Raises UnsupportedOpError for an op of control flow: DTensor has no rule for it."""
    for node in graph.nodes:
        name = node.target.name() if isinstance(node.target, HigherOrderOperator) else ""
        if name in ("cond", "flex_attention", "map_impl", "scan", "while_loop"):
            why = "it calls graphs with tensors that are split over chips, for which PyTorch has no rule"
            raise UnsupportedOpError(name, "collectives", user_line(node), why)


def without_capture(gm: GraphModule, fallback: str) -> Function:
    """Lets eager PyTorch run a graph that writes to an input whose new value has gradients. Raises MeshError if
    `fallback` is "error"."""
    if fallback == "error":
        raise MeshError(f"{WITH_GRADIENTS}; compute another tensor, or use fallback='host'")
    return wholly_on_host(gm, WITH_GRADIENTS)


def compile_sharded(
    gm: GraphModule, examples: Sequence[object], options: BackendOptions, aot: Callable[..., Function]
) -> Function:
    """Compiles a captured graph for the mesh of its DTensors. Nothing of it runs on the host.

    `aot` compiles a graph for examples of its inputs, a configuration and options. Raises MeshError for DTensors of
    several meshes, and for a call with a tensor that lies on the chips in another way.
    """
    door, captured = one_process(), gm
    gm = without_form_changes(copied(gm))
    on_mesh = _for_mesh(options, _mesh_of(examples))
    refuse_calls_of_graphs(gm.graph)
    _refuse_mixed(gm.graph)
    if gets_gradients(captured, door.memory_of):
        return without_capture(captured, options.compiler_config.fallback)
    views = EagerViews(gm, door.memory_of)
    _in_memory_of_their_own(gm)
    for node, x in zip(gm.graph.find_nodes(op="placeholder"), examples, strict=True):
        node.meta[AXES] = door.axes_of(x)

    def build(parts: Sequence[object]) -> Function:
        return views.after(aot(gm, parts, on_mesh.compiler_config, on_mesh))

    with door.as_one_chip():
        parts, fallback = [door.of_first_chip(x) for x in examples], options.compiler_config.fallback
        run = eager_if_overlapping(captured, parts, build, fallback, door.written_with)
    expected = [_placement(x) for x in examples]

    def call(*inputs: Argument) -> Result:
        for i, (x, said) in enumerate(zip(inputs, expected, strict=True)):
            if (got := _placement(x)) != said:
                raise MeshError(f"input {i} of the graph is {got}, and the program was compiled for {said}")
        return run(*inputs)

    return call


def _refuse_mixed(graph: Graph) -> None:
    """Raises UnsupportedOpError for an op of a DTensor and a tensor with a value per chip.

    A plain tensor is a tensor that all chips have. DTensor would treat a tensor with a value per chip as a plain one.
    """
    door = one_process()
    for node in graph.nodes:
        kinds = {type(n.meta.get("example_value")) for n in node.all_input_nodes}
        if node.op != "output" and door.LocalTensor in kinds and any(issubclass(k, door.DTensor) for k in kinds):
            raise UnsupportedOpError(str(node.target), "collectives", user_line(node), door.MIXED)


def _in_memory_of_their_own(gm: GraphModule) -> None:
    """Results that are not inputs become copies. AOTAutograd would make some as views, which DTensor refuses. The
    result of an op in place, such as `x.add_(1)`, is the input."""
    (output,) = gm.graph.find_nodes(op="output")
    given = {id(x.meta.get("example_value")): x for x in gm.graph.find_nodes(op="placeholder")}
    results = [given.get(id(x.meta.get("example_value")), x) if isinstance(x, Node) else x for x in output.args[0]]
    with gm.graph.inserting_before(output):
        output.args = (tuple(_copied(x) if _is_made(x) else x for x in results),)
    gm.recompile()


def _is_made(x: object) -> bool:
    return isinstance(x, Node) and x.op != "placeholder" and isinstance(x.meta.get("example_value"), torch.Tensor)


def _copied(x: Node) -> Node:
    new = x.graph.call_function(torch.clone, (x,))
    new.meta = dict(x.meta)
    return new


def without_host(config: CompilerConfig) -> CompilerConfig:
    """The configuration of a program for several chips: the host computes nothing of it, because it cannot exchange the
    values of chips. Raises ConfigError for options that need the host."""
    asked: dict[str, object] = {name: getattr(config, name) for name in ("enable_intermediate_verification", "bisect")}
    asked["compile_depth"] = config.compile_depth.name if config.compile_depth != CompileDepth.EXECUTE else None
    asked["fallback"] = config.fallback if config.fallback == "strict-dtype" else None
    for name, value in asked.items():
        if value:
            raise ConfigError(name, value, "its default in a program for several chips, which the host cannot run")
    return config.frozen(fallback="error")


def _for_mesh(options: BackendOptions, mesh: Mesh) -> BackendOptions:
    config = without_host(options.compiler_config)
    if config.mesh_shape not in ((1, 1), mesh):
        raise MeshError(f"the option mesh_shape is {config.mesh_shape}, and the DTensors are on the mesh {mesh}")
    return dataclasses.replace(options, compiler_config=config.frozen(mesh_shape=mesh))


def _mesh_of(examples: Sequence[object]) -> Mesh:
    """The mesh of all chips. It is the mesh of the DTensors, or a row of chips for tensors with a value per chip."""
    door = one_process()
    found = {door.whole_mesh(x) for x in examples if isinstance(x, door.DTensor)} or {(1, door.chips())}
    if len(found) > 1:
        raise MeshError(f"the DTensors are on the meshes {sorted(found)}; a program runs on one mesh")
    (shape,) = found
    if len(shape) > 2:
        raise MeshError(f"the mesh {shape} has {len(shape)} dimensions; a program runs on a mesh of one or two")
    return shape if len(shape) == 2 else (1, *shape)


def _placement(x: object) -> str:
    """How a tensor lies on the chips, in words."""
    door = one_process()
    if door and isinstance(x, door.DTensor):
        return f"a DTensor with {x.placements}"
    return "a tensor with a value per chip" if door and isinstance(x, door.LocalTensor) else "a plain tensor"


def graphs_on(mesh: Mesh, placeholders: Sequence[Node]) -> Callable[[GraphModule], None]:
    """A function that turns the graphs of AOTAutograd into programs of each chip of the mesh.

    It is called with the forward graph first. `placeholders` are the inputs of the captured graph.
    """
    if mesh == (1, 1):
        return draw_for_one_chip
    from tt_torch.dynamo import collectives  # it imports much of torch.distributed

    several = frozenset(axis for axis in (0, 1) if mesh[axis] > 1)  # nothing differs along the other axes
    known: dict[str, frozenset[int]] = {}  # the axes along which values differ, by the names of nodes

    def enter(gm: GraphModule) -> None:
        collectives.use_mesh_ops(gm, mesh)
        for node in gm.graph.find_nodes(op="placeholder"):
            position = position_of_input(node.meta.get("desc"))
            axes = known.get(node.name, several) if position is None else placeholders[position].meta[AXES]
            node.meta[AXES] = axes & several
        collectives.draw_for_each_chip(gm, mesh)
        known.update({node.name: axes for node, axes in collectives.varying(gm.graph).items()})

    return enter


def varying_results(graph: Graph) -> dict[int, frozenset[tuple[int, int]]]:
    """The results that may differ from chip to chip, by position. A reason is the position of an input that makes them
    differ, and the axis along which they differ. The position ALWAYS stands for an op that makes them differ for equal
    inputs, too."""
    from tt_torch.dynamo import collectives

    found = collectives.reasons(graph)
    (output,) = graph.find_nodes(op="output")
    each = enumerate(output.args[0])
    return {i: found[x] for i, x in each if found.get(x)}


class MeshExecutor(Executor):
    """A program for a mesh. Its tensors are plain tensors, which all chips have, or tensors with a value per chip.

    A result at one of the positions `each` has a value per chip if an input among its reasons has one; see
    `varying_results`. The gradient of a plain tensor is plain if it was summed over the chips. Otherwise, eager PyTorch
    would apply the values of all chips, one after another.
    """

    def __init__(
        self, compiled: CompiledProgram, device: Device, each: Mapping[int, Collection[tuple[int, int]]]
    ) -> None:
        self.each = each
        compiled.is_for_mesh = True
        super().__init__(compiled, device)

    def _load(self) -> Any:
        return self._loaded(each=self.each)

    def __call__(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        from tt_torch.torch_private import one_process as door

        given: list[Any] = [door.parts_of(x) or x for x in inputs]
        differ = {ALWAYS, *(i for i, x in enumerate(given) if isinstance(x, list))}
        results: list[Any] = super().__call__(given)
        reasons = {i: {position for position, _ in found} for i, found in self.each.items()}
        return [
            x if i not in reasons else door.of_parts(x) if differ & reasons[i] else x[0] for i, x in enumerate(results)
        ]

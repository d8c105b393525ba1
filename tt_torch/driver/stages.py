"""The stages of a program on several chips: `device_map` says on which chip the ops of each module run.

The stages run one after another. A value that a later stage reads goes over the host.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from torch.fx import GraphModule, Node
from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

from tt_torch.driver.partition import DevicePiece, HostProgram, inputs_first, roles_of_piece
from tt_torch.driver.program import Runner
from tt_torch.dynamo.interface import module_path
from tt_torch.dynamo.mesh_ops import AXES
from tt_torch.dynamo.passes.constant_fold import constant_fold
from tt_torch.dynamo.passes.rewriting import copied
from tt_torch.errors import DeviceMapError

DeviceMap = Mapping[str, int]
CompileOn = Callable[[GraphModule, Sequence[str], int], Runner]


def compile_in_stages(compile_on: CompileOn, gm: GraphModule, roles: Sequence[str], device_map: DeviceMap) -> Runner:
    """Compiles each stage of a graph by `compile_on(stage, roles, chip)`, and returns a runner for the whole.

    `gm` is functional, has only tensors at its border, and may be changed. `roles` are the roles of its placeholders.
    Raises DeviceMapError if a module of the graph has no entry.
    """
    constants = constant_fold(gm, fold=True)
    gm.graph.eliminate_dead_code()
    _note_axes(gm, constants)
    roles = [*roles, *["constant"] * len(constants)]
    outer, stages = _split(gm, chips_of(gm, device_map))
    runners: list[Runner] = []
    for name, chip in stages.items():
        runner = compile_on(outer.get_submodule(name), roles_of_piece(outer, name, roles), chip)
        outer.set_submodule(name, DevicePiece(runner))
        runners += runner.pieces if isinstance(runner, HostProgram) else [runner]
    return HostProgram(outer, runners, list(constants.values()))


def _note_axes(gm: GraphModule, constants: Collection[str]) -> None:
    """Notes along which axes of a mesh each value differs from chip to chip, for the stages that read it."""
    placeholders = gm.graph.find_nodes(op="placeholder")
    if not any(AXES in node.meta for node in placeholders):
        return  # a program of one chip per stage
    from tt_torch.dynamo import collectives  # it imports much of torch.distributed

    for node in placeholders:
        if node.name in constants:
            node.meta[AXES] = frozenset()
    for node, axes in collectives.varying(gm.graph).items():
        node.meta[AXES] = axes


def chips_of(gm: GraphModule, device_map: DeviceMap) -> dict[Node, int]:
    """The chip of each op. Stages are in the order in which the graph first uses their chips.

    An op without a module of its own, such as one in the `forward` of the model, runs where the last of its operands
    is. If it reads inputs of the graph only, it runs where its result is used first. An op that reads a value of a
    later stage runs in that stage, because values only go forward: with `{"a": 0, "b": 1}`, a second use of `a` that
    reads a result of `b` runs on chip 1.
    """
    ops = [n for n in gm.graph.nodes if n.op == "call_function"]
    own = {node: chip for node in ops if (chip := _chip_of_module(module_path(node), device_map)) is not None}
    order = list(dict.fromkeys(own.values())) or [min(device_map.values())]
    stages: dict[Node, int] = {}
    for node in ops:
        given = [order.index(own[node])] if node in own else []
        if read := [*given, *(stages[n] for n in node.all_input_nodes if n in stages)]:
            stages[node] = max(read)
    for node in reversed(ops):
        if node not in stages:
            stages[node] = min((stages[n] for n in node.users if n in stages), default=0)
    return {node: order[stages[node]] for node in ops}


def _chip_of_module(path: str, device_map: DeviceMap) -> int | None:
    """The chip of the module or of the nearest module around it; None if only its parts have entries."""
    names = path.split(".") if path else []
    for end in range(len(names), -1, -1):
        if (around := ".".join(names[:end])) in device_map:
            return device_map[around]
    if names and not any(entry.startswith(f"{path}.") for entry in device_map):
        raise DeviceMapError(path, device_map)
    return None


def _split(gm: GraphModule, chips: Mapping[Node, int]) -> tuple[GraphModule, dict[str, int]]:
    """A copy of the graph whose stages are submodules, and the chip of each stage by the stage's name."""
    own = copied(gm)
    chip_of = {node.name: chip for node, chip in chips.items()}
    stages: dict[int, dict[Node, int | None]] = {}
    for node in own.graph.nodes:
        if node.name in chip_of:
            stages.setdefault(chip_of[node.name], {})[node] = None
    outer = fuse_by_partitions(own, list(stages.values()), prefix="stage_", always_return_tuple=True)
    names = {f"stage_{i}": chip for i, chip in enumerate(stages)}
    for name in names:
        inputs_first(outer.get_submodule(name).graph)
    outer.recompile()
    return outer, names

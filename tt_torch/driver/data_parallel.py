"""`automatic_parallelization`: one program of a graph without DTensors. Each chip computes a part of the batch.

DTensor decides what the chips exchange. For two chips, which get the halves of `x`, the graph `relu(x @ w)` becomes

    %a = on_mesh(%x_half, Shard(0)), %b = on_mesh(%w, Replicate())
    %y = relu(%a @ %b)
    %result = whole(%y)            gathers the halves
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import ModuleType

import torch
from torch.fx import GraphModule

from tt_torch.config import BackendOptions
from tt_torch.driver.decisions import write_numbers
from tt_torch.driver.overlaps import eager_if_overlapping
from tt_torch.driver.shards import refuse_calls_of_graphs, without_capture, without_host
from tt_torch.driver.sizes import numbers_read, once_per_size
from tt_torch.dynamo.eager_views import EagerViews, gets_gradients
from tt_torch.dynamo.interface import source
from tt_torch.dynamo.mesh_ops import AXES
from tt_torch.dynamo.passes.rewriting import copied
from tt_torch.dynamo.types import Argument, Function
from tt_torch.errors import ConfigError, ShardingError
from tt_torch.torch_private.aot import backward_ahead_of_time, is_weight
from tt_torch.torch_private.tensors import DataDependentOutputException, mode_of_a_chip, storage_of


def compile_data_parallel(
    gm: GraphModule, examples: Sequence[object], options: BackendOptions, aot: Callable[..., Function]
) -> Function:
    """Compiles a captured graph for the mesh of the options. Inputs with the batch are split, weights are on each chip.
    There is a program for each set of sizes, and for each value that the graph reads as a number.

    `aot` compiles a graph for examples of its inputs, a configuration and options. Raises ShardingError if the batch
    cannot be split, ConfigError for a mesh of one chip, and MeshError for a write to an input that gets gradients.
    """

    def for_numbers(gm: GraphModule, inputs: Sequence[object]) -> Function:
        gm, tensors = copied(gm), [i for i, x in enumerate(inputs) if not isinstance(x, (int, float))]
        given = zip(gm.graph.find_nodes(op="placeholder"), inputs, strict=True)
        write_numbers(gm.graph, [x if isinstance(x, (int, float)) else node for node, x in given])
        gm.recompile()
        run = _for_tensors(gm, [inputs[i] for i in tensors], options, aot)
        return lambda *given: run(*(given[i] for i in tensors))

    def for_sizes(gm: GraphModule, inputs: Sequence[object]) -> Function:
        try:
            return for_numbers(gm, inputs)
        except DataDependentOutputException:
            read = numbers_read(gm, inputs)
            if not read:
                raise
            return once_per_size(gm, read, for_numbers, mode_of_a_chip)

    if any(isinstance(value, torch.SymInt) for value in examples):
        return once_per_size(gm, [], for_sizes, mode_of_a_chip)
    return for_sizes(gm, examples)


def _for_tensors(
    gm: GraphModule, examples: Sequence[object], options: BackendOptions, aot: Callable[..., Function]
) -> Function:
    """The program of a graph whose inputs are tensors."""
    from tt_torch.torch_private import one_process as door  # it imports much of torch.distributed

    config = without_host(options.compiler_config)
    chips, captured, gm = math.prod(config.mesh_shape), gm, copied(gm)
    if chips == 1:
        raise ConfigError("mesh_shape", config.mesh_shape, "a mesh of several chips with automatic_parallelization")
    refuse_calls_of_graphs(gm.graph)
    if gets_gradients(captured, storage_of):
        return without_capture(captured, options.compiler_config.fallback)
    split = _with_the_batch(gm, examples, chips)
    views = EagerViews(gm, storage_of)
    for i, node in enumerate(gm.graph.find_nodes(op="placeholder")):
        node.meta[AXES] = frozenset((0, 1) if i in split else ())

    def of_chips(i: int, x: Argument) -> Argument:
        return door.of_whole(x, chips) if i in split else x

    def build(inputs: Sequence[object]) -> Function:
        parts = [door.first_part(x, chips) if i in split else door.of_first_chip(x) for i, x in enumerate(inputs)]
        run = aot(gm, parts, config, options)
        return views.after(lambda *given: run(*(of_chips(i, x) for i, x in enumerate(given))))

    with door.row_of(chips, examples[split[0]].device.type) as row:  # type: ignore[attr-defined]
        _put_on_mesh(gm, split, door, row)
        with door.as_one_chip(), backward_ahead_of_time():
            return eager_if_overlapping(captured, examples, build, options.compiler_config.fallback)


def _with_the_batch(gm: GraphModule, examples: Sequence[object], chips: int) -> list[int]:
    """The positions of inputs whose first dimension is the batch.

    The batch is the first dimension of the first tensor that is not a weight. Raises ShardingError if there is none, or
    if the batch is not a multiple of `chips`.
    """
    nodes = gm.graph.find_nodes(op="placeholder")
    tensors = [i for i, x in enumerate(examples) if isinstance(x, torch.Tensor) and x.dim() and not is_weight(nodes[i])]
    if not tensors:
        raise ShardingError((), "automatic_parallelization splits a batch, and no input of the graph has one")
    shape = examples[tensors[0]].shape  # type: ignore[attr-defined]
    if shape[0] % chips:
        what = f"the batch, dimension 0 of {source(nodes[tensors[0]])}, is not a multiple of {chips} chips"
        raise ShardingError(tuple(map(int, shape)), what)
    found = [(i, examples[i]) for i in tensors]
    return [i for i, x in found if x.shape[0] == shape[0]]  # type: ignore[attr-defined]


def _put_on_mesh(gm: GraphModule, split: Sequence[int], door: ModuleType, mesh: object) -> None:
    """Makes DTensors of the graph's inputs, and whole tensors of its results."""

    def on_chips(x: Argument) -> Argument:
        return door.on_mesh(x, mesh, split=True)

    def on_each_chip(x: Argument) -> Argument:
        return door.on_mesh(x, mesh, split=False)

    for i, node in enumerate(gm.graph.find_nodes(op="placeholder")):
        if isinstance(node.meta.get("example_value"), torch.Tensor):
            with gm.graph.inserting_after(node):
                new = gm.graph.call_function(on_chips if i in split else on_each_chip, (node,))
            new.meta = dict(node.meta)  # passes find out with it that a view of a DTensor is a view of the input
            node.replace_all_uses_with(new, lambda user, new=new: user is not new)
    (output,) = gm.graph.find_nodes(op="output")
    with gm.graph.inserting_before(output):
        output.args = (tuple(gm.graph.call_function(door.whole, (x,)) for x in output.args[0]),)
    gm.recompile()

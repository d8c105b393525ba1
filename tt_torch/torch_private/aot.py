"""Private names of AOTAutograd. Importing this module imports Dynamo, which takes longer than importing torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from functorch.compile import (
    config,  # 2.13.0: without it a backward graph would be compiled when it first runs, which needs the compiler
    default_partition,  # 2.13.0: without it forward and backward of a model would be one graph
    make_boxed_func,  # 2.13.0: without it AOTAutograd would not take a plain function for a program
)
from torch._decomp.decompositions_for_rng import PhiloxStateTracker  # 2.13.0: for without_random_states
from torch._dynamo.backends.common import aot_autograd  # 2.13.0: without it there is no functional graph, no backward
from torch._dynamo.exc import TensorifyScalarRestartAnalysis  # 2.13.0: for scalar_inputs_stay
from torch._dynamo.symbolic_convert import TensorifyState  # 2.13.0: for scalar_inputs_stay
from torch._functorch._aot_autograd import graph_compile  # 2.13.0: for scalar_inputs_stay
from torch._functorch._aot_autograd.descriptors import (
    InputMutationAOTOutput,  # 2.13.0: for input_of_new_value
    PlainAOTInput,  # 2.13.0: without it messages call inputs by number
    SubclassGetAttrAOTInput,  # 2.13.0: for position_of_input and input_of_new_value
    SubclassGetAttrAOTOutput,  # 2.13.0: for input_of_new_value
)
from torch._functorch._aot_autograd.schemas import (
    MemoryFormatMeta,  # 2.13.0: for gradients_in_own_places
    OutputType,  # 2.13.0: for is_plain_inference and the facts about gradients below
    PlainTensorMeta,  # 2.13.0: the same
    ViewAndMutationMeta,  # 2.13.0: the same
)
from torch._guards import (
    TracingContext,  # 2.13.0: without it parameters cannot be distinguished from inputs
    tracing,  # 2.13.0: without it a graph is not compiled again for another shape at a later call
)
from torch.fx import GraphModule, Node

from tt_torch.torch_private.distributed import one_process
from tt_torch.torch_private.tensors import is_non_overlapping_and_dense_or_false
from tt_torch.torch_private.view_sequences import made_from_base, views_from_bases

__all__ = [
    "PlainAOTInput", "TracingContext", "aot_autograd", "default_partition", "make_boxed_func",
    "tracing",
]  # fmt: skip

# The outputs whose gradients AOTAutograd passes to the backward graph. PyTorch makes the others as views.
_WITH_GRADIENTS = (OutputType.non_alias, OutputType.unsafe_view_alias, OutputType.custom_function_view)
# A function that AOTAutograd calls. It takes its inputs in a list, which it empties.
Boxed = Callable[[list[Any]], Sequence[Any]]


# 2.13.0: without it inputs would live until the program is done, and AOTAutograd would warn.
def boxed(run: Boxed) -> Boxed:
    """Marks a function for AOTAutograd as one that takes its inputs in a list and empties the list."""

    def call(inputs: list[Any]) -> Sequence[Any]:
        return run(inputs)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


# 2.13.0: without it a recurrent layer is one op, which only the CPU has. The public `torch.backends.mkldnn.flags` also
# sets precisions, and does not restore those that were inherited.
@contextmanager
def without_mkldnn() -> Iterator[None]:
    """While this context is active, PyTorch does not use mkldnn."""
    enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(enabled)


# 2.13.0: without it AOTAutograd makes twelve fake tensors per graph, which is a sixth of the time of a small graph.
@contextmanager
def without_random_states() -> Iterator[None]:
    """While this context is active, AOTAutograd makes no states of random numbers. It still makes them if its option
    `functionalize_rng_ops` is set, because only this option uses them."""
    reset = vars(PhiloxStateTracker)["reset"]
    if not config.functionalize_rng_ops:
        PhiloxStateTracker.reset = staticmethod(lambda: None)  # type: ignore[method-assign]
    try:
        yield
    finally:
        PhiloxStateTracker.reset = reset  # type: ignore[method-assign]


# 2.13.0: without it a write to a float64 input without dimensions would be lost, if nothing reads what it returns. The
# pass takes the input for a Python number, and lets Dynamo trace again without it and its write.
@contextmanager
def scalar_inputs_stay(gm: GraphModule) -> Iterator[None]:
    """A context for the capture of a graph: AOTAutograd asks Dynamo to leave out an input only if the graph reads its
    number with `item`."""
    original, read = graph_compile.tensorify_python_scalars, _numbers_read(gm)
    known = set(TensorifyState.force_specializations)

    def of_numbers(*args: Any) -> None:
        try:
            original(*args)
        except TensorifyScalarRestartAnalysis:  # it is raised as the last step
            TensorifyState.force_specializations &= known | read
            if TensorifyState.force_specializations > known:
                raise

    graph_compile.tensorify_python_scalars = of_numbers
    try:
        yield
    finally:
        graph_compile.tensorify_python_scalars = original


def _numbers_read(gm: GraphModule) -> set[str]:
    """The symbols of the inputs whose numbers a graph reads."""
    given = [n for n in gm.graph.find_nodes(op="placeholder") if any(user.target == "item" for user in n.users)]
    memos = [getattr(n.meta.get("example_value"), "item_memo", None) for n in given]
    return {str(memo.node._expr) for memo in memos if memo is not None}


# 2.13.0: without it the gradient of an output that `unfold` gives would lose elements. AOTAutograd copies it to memory
# with the strides of the output, where several elements have one place. It makes an exception only for `expand`.
@contextmanager
def gradients_in_own_places() -> Iterator[None]:
    """A context for outputs that have gaps or repeated elements in memory. AOTAutograd takes their gradients as
    contiguous tensors, or as tensors with channels last."""
    of = vars(MemoryFormatMeta)["from_tensor"]

    def from_tensor(t: torch.Tensor, force_use_memory_format: bool = False) -> MemoryFormatMeta | None:
        scattered = t.layout is torch.strided and not is_non_overlapping_and_dense_or_false(t)
        return of(t, force_use_memory_format or scattered)

    MemoryFormatMeta.from_tensor = staticmethod(from_tensor)
    try:
        yield
    finally:
        MemoryFormatMeta.from_tensor = of


# 2.13.0: without it a program for several chips would not know which of its inputs are the parts of which DTensor.
def position_of_input(descriptor: Any) -> int | None:
    """The position of the captured graph's input from which an input of AOTAutograd's graph comes; None for others."""
    while isinstance(descriptor, SubclassGetAttrAOTInput):
        descriptor = descriptor.base
    return descriptor.idx if isinstance(descriptor, PlainAOTInput) else None


# 2.13.0: without it the new value of an input would always be copied into the input.
def input_of_new_value(descriptor: Any) -> Any:
    """The descriptor of the input whose new value an output is; None for other outputs. The part of a DTensor that a
    chip has is an input of its own."""
    if isinstance(descriptor, SubclassGetAttrAOTOutput):
        base = input_of_new_value(descriptor.base)
        return base and SubclassGetAttrAOTInput(base, descriptor.attr)
    return descriptor.mutated_input if isinstance(descriptor, InputMutationAOTOutput) else None


# 2.13.0: without it the batch of a graph would be looked for among its weights.
def is_weight(placeholder: Node) -> bool:
    """Whether an input of a captured graph is a parameter or a buffer of a module."""
    return placeholder.meta.get("tensor_dict", {}).get("_dynamo_static_input_type") is not None


@contextmanager
def backward_ahead_of_time() -> Iterator[None]:
    """While this context is active, AOTAutograd compiles the backward graph together with the forward graph."""
    with config.patch(force_non_lazy_backward_lowering=True):
        yield


def correct(metadata: ViewAndMutationMeta) -> None:
    """Corrects what AOTAutograd has found out about a graph, before it makes the wrapper of the graph's program."""
    keep_saved_tensors(metadata)
    write_without_gradients(metadata)
    made_from_base(metadata)


# 2.13.0: without it a write under `no_grad` would cut the gradient of an input that is not a leaf. AOTAutograd copies
# the new value to the input with gradients, unless the input is a leaf, or the copy is a part of the graph.
def write_without_gradients(metadata: ViewAndMutationMeta) -> None:
    """Lets the wrapper of a program copy a new value to an input without gradients, if the graph wrote it so."""
    for i, given in enumerate(metadata.input_info):
        if given.mutations_hidden_from_autograd or given.mutations_under_no_grad_or_inference_mode:
            metadata.input_info[i] = replace(given, is_leaf=True)


@contextmanager
def capturing(gm: GraphModule) -> Iterator[None]:
    """The settings in which AOTAutograd captures a graph."""
    with (
        without_mkldnn(),
        without_random_states(),
        gradients_in_own_places(),
        views_from_bases(),
        scalar_inputs_stay(gm),
    ):
        yield


# 2.13.0: without it a second call with `backward(retain_graph=True)` would be an error
def keep_saved_tensors(metadata: ViewAndMutationMeta) -> None:
    """Tells AOTAutograd that the backward program does not reuse the memory of the tensors that the forward program
    saved for it."""
    metadata.bw_donated_idxs = []


# 2.13.0: without it a package could not tell which gradients its backward program takes
# 2.13.0: without it a model with DTensors would be checked for writes to other inputs than it writes to
def written_inputs(metadata: ViewAndMutationMeta, inputs: Sequence[torch.Tensor]) -> list[int]:
    """The positions of the inputs that a graph writes to. AOTAutograd counts the local tensor and the mesh of each
    DTensor as two inputs."""
    door = one_process()
    parts = [2 if door and isinstance(x, door.DTensor) else 1 for x in inputs]
    whole = [i for i, count in enumerate(parts) for _ in range(count)]
    return list(dict.fromkeys(whole[i] for i in metadata.mutated_inp_runtime_indices))


def results_with_gradients(metadata: ViewAndMutationMeta) -> list[int]:
    """Positions of the forward graph's results whose gradients are the last inputs of the backward graph, in order.

    The results are the new values of the inputs that the graph writes to, the outputs, and the memory of outputs that
    share it.
    """
    written, outputs = metadata.mutated_inp_runtime_indices, metadata.output_info
    infos = [metadata.input_info[i] for i in written]
    found = [i for i, info in enumerate(infos) if info.mutates_data and info.requires_grad]
    for i, made in enumerate(outputs, len(written)):
        if made.output_type in _WITH_GRADIENTS and made.requires_grad_for_backward:
            found.append(i)
    first = len(written) + len(outputs)
    return [*found, *range(first, first + metadata.num_intermediate_bases)]


# 2.13.0: without it outputs of a package that share memory would have no gradients
def memory_of_outputs(metadata: ViewAndMutationMeta) -> dict[int, int]:
    """Maps the position of each output that is a view of another result's memory to the position of that result.

    The outputs have the first positions. Additional results, which only hold memory, follow.
    """
    count = len(metadata.output_info)
    first = dict.fromkeys((OutputType.alias_of_intermediate, OutputType.alias_of_intermediate_save_as_output), count)
    first[OutputType.alias_of_intermediate_base_is_user_output] = 0
    outputs = enumerate(metadata.output_info)
    return {i: first[made.output_type] + made.base_idx for i, made in outputs if made.output_type in first}


# 2.13.0: without it a call whose inputs overlap in memory in another way would write to the places of the first call.
def writes_to_inputs(metadata: ViewAndMutationMeta) -> bool:
    """Whether a traced graph writes to an input, or changes its form."""
    return any(
        given.mutates_data or given.mutates_metadata or given.mutation_inductor_storage_resize
        for given in metadata.input_info
    )


# 2.13.0: without it the compile cache would keep programs that need what AOTAutograd does around them.
def is_plain_inference(metadata: ViewAndMutationMeta) -> bool:
    """Whether a traced graph only computes: its results are new tensors without gradients, and it writes to no input.
    Then AOTAutograd only runs the program at a call."""
    new = all(made.output_type is OutputType.non_alias and not made.requires_grad for made in metadata.output_info)
    subclasses = any(not isinstance(given, PlainTensorMeta) for given in metadata.subclass_inp_meta)
    extra = metadata.tokens or metadata.num_intermediate_bases or metadata.traced_tangents
    return new and not (writes_to_inputs(metadata) or subclasses or extra)

"""Makes a package of a compiled model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import torch
from torch.fx import Node

from tt_torch.driver.arguments import device_of, lacks_values, tensors_in
from tt_torch.driver.compilation import Compilation, Input, by_itself, inputs_of, on_cpu, weights_of
from tt_torch.driver.exact_runner import ExactRunner
from tt_torch.driver.executor import CompiledProgram, Executor
from tt_torch.driver.family import Family
from tt_torch.driver.flow_runner import CheckedRunner
from tt_torch.driver.package.contents import Package, separate
from tt_torch.driver.package.manifest import (
    BACKWARD,
    CHECK,
    NAMES,
    Graph,
    Json,
    Manifest,
    Place,
    ProgramForm,
    Training,
    Weight,
    kept_for_backward,
)
from tt_torch.driver.package.on_mesh import as_traced, on_mesh, tensors_among, whole
from tt_torch.driver.package.results import tree, weights_in
from tt_torch.driver.program import Program
from tt_torch.driver.releasing import parts_of_weight
from tt_torch.dynamo.calls import Interface
from tt_torch.dynamo.idle_dropout import without_idle_dropout
from tt_torch.dynamo.tracing import tracing_for_device
from tt_torch.errors import PackagingError
from tt_torch.flow import MAIN, Flow
from tt_torch.torch_private.aot import memory_of_outputs, results_with_gradients
from tt_torch.torch_private.capture import captured
from tt_torch.torch_private.dynamo import STREAM_OPS
from tt_torch.torch_private.released import ReleasedWeight
from tt_torch.torch_private.tensors import storage_of


def package_of(members: Sequence[Compilation], family: Family | None = None, weights: bool = True) -> Package:
    """The package of a compilation, or of all compilations of a family. It shares memory with the model's weights.

    If `weights` is False, it has no weight that a checkpoint has. Raises PackagingError for a model that cannot be a
    package.
    """
    manifests: list[Manifest] = []
    tensors: dict[str, torch.Tensor] = {}
    for number, made in enumerate(members):
        manifest, own = _member(made, weights, f"{number}/" if family else "")
        for name in own.keys() & tensors.keys():
            if own[name] is not tensors[name]:
                raise PackagingError(f"{name} is not the same tensor in all programs")
        manifests.append(manifest)
        tensors |= own
    return Package(manifests, separate({name: whole(x) for name, x in tensors.items()}), family)


def _member(made: Compilation, weights: bool, prefix: str) -> tuple[Manifest, dict[str, torch.Tensor]]:
    """The manifest and the tensors of a compilation; the names of its programs begin with the prefix."""
    given = inputs_of(made.model, made.capture, made.call)
    inputs, programs = tensors_among(given), _programs(made.program)
    _check(made, as_traced(given))
    places, result = _results(made, inputs)
    returned = {name: x for name, x in weights_of(made.model).items() if name in weights_in(result)}
    kept = (_all(made.model) if made.backward else {}) | returned | _used(inputs)
    manifest = _manifest(made, inputs, programs, kept, places, result)
    if any(executor.compiled.is_for_mesh for executor in programs.values()):
        outputs = _outputs(made.capture.graph)[: len(places)]
        manifest = on_mesh(manifest, made, given, outputs, programs)
    tensors = tensors_of(programs, prefix)
    if made.backward:
        backward = _programs(made.backward)
        parameters = _parameters(kept, {inputs[i].name for i in made.trained})
        training = _training(made, Graph(**graph_fields(made.backward, backward)), parameters)
        _check_gradients(training, manifest)
        manifest = replace(manifest, training=training)
        tensors |= tensors_of(backward, prefix + BACKWARD)
    if not weights:
        kept = {name: x for name, x in kept.items() if not manifest.weights[name].in_checkpoint}
    for name, x in kept.items():
        if reason := lacks_values(x):
            raise PackagingError(f"{name} is {reason}, so it has no values: save the package with weights=False")
        if any(isinstance(part, ReleasedWeight) for part in parts_of_weight(x)):
            raise PackagingError(f"{name} was released: save the package before, or with weights=False")
    return manifest, {f"weight/{name}": tensor for name, tensor in kept.items()} | tensors


def _programs(program: Program) -> dict[str, Executor]:
    found = programs_of(program)
    if found is None:
        raise PackagingError("the options of the compilation ask for a run that a package cannot do")
    return found


def _used(inputs: Sequence[Input]) -> dict[str, torch.Tensor]:
    """The weights among the inputs of a graph."""
    weights = {given.name: given.tensor for given in inputs if not given.is_argument}
    if len(weights) + sum(given.is_argument for given in inputs) < len(inputs):
        raise PackagingError("two weights of the model have the same name")
    return weights


def _all(model: object) -> dict[str, torch.Tensor]:
    """All parameters of the model, in its order, and its buffers that a checkpoint has, even if no graph uses them."""
    if not isinstance(model, torch.nn.Module):
        return {}
    state = _checkpoint(model)
    return {**dict(model.named_parameters()), **{name: x for name, x in model.named_buffers() if name in state}}


def _parameters(weights: Mapping[str, torch.Tensor], trained: Collection[str]) -> dict[str, bool]:
    """The weights that an optimizer takes, and whether they require gradients. A function may use trained tensors that
    are no Parameters."""
    found = {name: x for name, x in weights.items() if isinstance(x, torch.nn.Parameter) or name in trained}
    return {name: x.requires_grad for name, x in found.items()}


def _checkpoint(model: object) -> set[str]:
    """The names of the weights that a checkpoint of the model has."""
    return set(model.state_dict(keep_vars=True)) if isinstance(model, torch.nn.Module) else set()


def programs_of(program: Program) -> dict[str, Executor] | None:
    """The programs that run a graph, by their names in files; None if something else runs it, or a part of it."""
    runner = program.runner
    if isinstance(runner, ExactRunner) and isinstance(runner.runner, CheckedRunner):
        return dict(runner.runner.executors)
    if not isinstance(runner, ExactRunner) or not isinstance(runner.runner, Executor):
        return None
    if runner.check is not None and not isinstance(runner.check, Executor):
        return None
    return {MAIN: runner.runner} | ({CHECK: runner.check} if runner.check else {})


def flow_of(program: Program) -> Flow | None:
    """When the programs of a graph run; None if there is one program."""
    runner = program.runner
    if isinstance(runner, ExactRunner) and isinstance(runner.runner, CheckedRunner):
        return runner.runner.flow
    return None


def tensors_of(programs: Mapping[str, Executor], prefix: str = "") -> dict[str, torch.Tensor]:
    """The binaries and the constants of programs, by their names in files."""
    tensors: dict[str, torch.Tensor] = {}
    for name, executor in programs.items():
        tensors[f"program/{prefix}{name}"] = torch.frombuffer(bytearray(executor.binary), dtype=torch.uint8)
        tensors |= {f"constant/{prefix}{name}/{i}": x for i, x in enumerate(executor.compiled.constants)}
    return tensors


def graph_fields(program: Program, programs: Mapping[str, Executor]) -> dict[str, Any]:
    """The fields of a Graph, for a program that these programs run."""
    runner = program.runner
    assert isinstance(runner, ExactRunner)
    more = runner.runner.checks if isinstance(runner.runner, CheckedRunner) else []
    return {
        "interface": program.interface.with_results(len(more)),
        "views": program.views,
        "checks": [*program.checks, *more],
        "limits": runner.plan.limits,
        "checked": runner.plan.checked,
        "resident": sorted(runner.resident),
        "programs": {name: _form(executor.compiled) for name, executor in programs.items()},
        "flow": flow_of(program),
    }


def _manifest(
    made: Compilation,
    inputs: Sequence[Input],
    programs: Mapping[str, Executor],
    weights: Mapping[str, torch.Tensor],
    places: list[Place],
    result: Json,
) -> Manifest:
    metadata = made.metadata
    return Manifest(
        **graph_fields(made.program, programs),
        signature=[(name, int(kind)) for name, kind in made.signature.parameters],
        forms=made.forms,
        weights=_weights(made.model, weights),
        inputs=[(not given.is_argument, given.name) for given in inputs],
        tokens=len(metadata.tokens),
        written=list(metadata.mutated_inp_runtime_indices),
        places=places,
        result=result,
        versions={name: version(name) for name in ("tt-torch", "torch")},
    )


def _training(made: Compilation, backward: Graph, parameters: dict[str, bool]) -> Training:
    metadata, gradients = made.metadata, results_with_gradients(made.metadata)
    written, outputs = len(metadata.mutated_inp_runtime_indices), len(metadata.output_info)
    results, bases = written + outputs + metadata.num_intermediate_bases, memory_of_outputs(metadata)
    kept = kept_for_backward(made.program, len(metadata.tokens), results)
    if backward.interface.inputs != list(range(kept + len(gradients))) or metadata.num_backward_tokens:
        raise PackagingError("the backward pass of the model takes or gives tensors of a kind that a package lacks")
    first = len(metadata.tokens) + written
    for i, base in bases.items():
        if _memory(made.program.interface, first + i) != _memory(made.program.interface, first + base):
            raise PackagingError("a result is a view of another one, of a kind that a package cannot make")
    differentiable = [i for i, output in enumerate(metadata.output_info) if output.requires_grad]
    # a model can write to a leaf that requires gradients only under `no_grad`
    leaves = (i for i in metadata.mutated_inp_runtime_indices if metadata.input_info[i].is_leaf)
    hidden = [i for i in leaves if i in made.trained]
    return Training(backward, results, gradients, bases, differentiable, hidden, made.trained, parameters)


def _check_gradients(training: Training, manifest: Manifest) -> None:
    """Raises PackagingError for a result whose gradient would be lost. It is a view of an input, but its place does not
    say so. This happens for conjugates and for tensors without elements."""
    known = {i - len(manifest.written) for i in training.gradients} | training.bases.keys()
    known |= {i for i, place in enumerate(manifest.places) if place.argument is not None}
    if not known.issuperset(i for i in training.differentiable if i < len(manifest.places)):
        raise PackagingError("a result is a view of an input, of a kind that a package cannot make")


def _memory(interface: Interface, output: int) -> int:
    """The number of the program's result whose memory an output of the graph has."""
    place = interface.places[interface.outputs[:output].count(...)]
    return place if isinstance(place, int) else place.result


def _check(made: Compilation, inputs: Sequence[Input | None]) -> None:
    """Raises PackagingError for what a package cannot do at a call. The inputs are those that AOTAutograd has."""
    metadata = made.metadata
    count = len(metadata.mutated_inp_runtime_indices) + len(metadata.output_info) + metadata.num_intermediate_bases
    kept = kept_for_backward(made.program, len(metadata.tokens), count)
    if (kept < 0) if made.backward else kept:
        raise PackagingError("the model has tensors of a kind that a package cannot hold")
    for given, info in zip(inputs, metadata.input_info, strict=True):
        if given and (info.mutates_metadata or info.mutation_inductor_storage_resize):
            raise PackagingError(
                f"the model changes the shape or the memory of {given.name}, which a package cannot do"
            )
    memory = [given and storage_of(given.tensor) for given in inputs]
    for i in metadata.mutated_inp_runtime_indices:
        if (written := inputs[i]) and memory.count(memory[i]) > 1:
            raise PackagingError(f"the model writes to {written.name}, which shares memory with another weight")
    if any(node.target in STREAM_OPS for node in made.capture.graph.graph.nodes):
        raise PackagingError("the model uses streams, unlike packages")


def _weights(model: object, weights: Mapping[str, torch.Tensor]) -> dict[str, Weight]:
    names: dict[int, list[str]] = {}
    if isinstance(model, torch.nn.Module):
        for of in (model.named_parameters, model.named_buffers):
            for name, tensor in of(remove_duplicate=False):
                names.setdefault(id(tensor), []).append(name)
    checkpoint = _checkpoint(model)
    found = {}
    for name, x in weights.items():
        if x.dtype not in NAMES or x.dtype is torch.complex128:
            raise PackagingError(f"{name} is a weight of {x.dtype}, which the format of packages lacks")
        aliases = tuple(alias for alias in names.get(id(x), []) if alias != name)
        in_checkpoint = bool(lacks_values(x)) or bool(checkpoint & {name, *aliases})
        found[name] = Weight(tuple(x.shape), x.dtype, device_of(x), aliases, in_checkpoint)
    return found


def _form(compiled: CompiledProgram) -> ProgramForm:
    return ProgramForm(
        compiled.kinds,
        compiled.output_dtypes,
        compiled.output_strides,
        compiled.output_devices,
        compiled.compare_weights,
        len(compiled.constants),
    )


def _results(made: Compilation, inputs: Sequence[Input]) -> tuple[list[Place], Json]:
    """The places in memory of the graph's results, and the tree of the model's result.

    The graph may have more results, for Python objects that the model changes. A package has no such objects.
    """
    outputs, capture = _outputs(made.capture.graph), made.capture
    if capture.side_effects:
        with torch.set_grad_enabled(made.backward is not None), tracing_for_device(), on_cpu(made.model):
            model, call = by_itself(made.model), made.call
            again = captured(model, call.args, call.kwargs, without_idle_dropout, side_effects=False)
        assert again is not None
        capture = again
    returned = _outputs(capture.graph)
    given = {storage_of(node.meta["example_value"]) for node in _inputs(made.capture.graph)}
    kept = [node for node in outputs[len(returned) :] if storage_of(node.meta["example_value"]) not in given]
    replaced = made.capture.replaced.tensors  # the graph reads them, and a package would read their old values again
    if kept or replaced or [node.name for node in returned] != [node.name for node in outputs[: len(returned)]]:
        objects = ", ".join(replaced) or capture.side_effects
        raise PackagingError(f"the model keeps tensors in Python objects, which a package lacks: {objects}")
    probes = [torch.empty(0) for _ in returned]
    value = capture.function(lambda *_: probes)(*made.call.args, **made.call.kwargs)
    known: dict[int, dict[str, Any]] = {id(probe): {"result": i} for i, probe in enumerate(probes)}
    known |= {id(x): {"argument": name} for name, x in tensors_in(made.call).items()}  # the graph may not need them
    known |= {id(x): {"weight": name} for name, x in weights_of(made.model).items()}
    known |= {id(x.tensor): {"argument" if x.is_argument else "weight": x.name} for x in inputs}
    return _places(returned, _inputs(made.capture.graph), inputs), tree(value, known)


def _outputs(graph: torch.fx.GraphModule) -> list[Node]:
    (output,) = graph.graph.find_nodes(op="output")
    return list(output.args[0])


def _inputs(graph: torch.fx.GraphModule) -> list[Node]:
    """The inputs that are tensors. The meshes of DTensors are no tensors."""
    nodes = graph.graph.find_nodes(op="placeholder")
    return [node for node in nodes if isinstance(node.meta["example_value"], torch.Tensor)]


def _places(outputs: Sequence[Node], placeholders: Sequence[Node], inputs: Sequence[Input]) -> list[Place]:
    examples = [node.meta["example_value"] for node in placeholders]
    given = {storage_of(x): i for i, x in enumerate(examples)}
    values = [node.meta["example_value"] for node in outputs]
    memory = [None if x.is_conj() or x.is_neg() or not x.numel() else storage_of(x) for x in values]
    places = []
    for x, of in zip(values, memory, strict=True):
        form, offset = (tuple(x.shape), tuple(x.stride())), int(x.storage_offset())
        if of in given:
            source, name = examples[given[of]], inputs[given[of]].name
            if source.dtype != x.dtype or not (inputs[given[of]].is_argument or source.is_contiguous()):
                raise PackagingError(f"a result is a view of {name}, of a kind that a package cannot make")
            places.append(Place(*form, offset - int(source.storage_offset()), None, given[of]))
        else:
            alone = of is None or memory.count(of) == 1
            places.append(Place(*form, 0 if alone else offset, None if alone else memory.index(of)))
    return places

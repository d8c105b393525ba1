"""Ahead-of-time compilation: a model for arguments of given forms becomes a binary."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, overload

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from tt_torch import user_code
from tt_torch.config import BackendOptions, CompilerConfig, Options
from tt_torch.driver.arguments import (
    UNTRAINED,
    Call,
    Signature,
    TensorForm,
    check_weights,
    device_of,
    forms,
    parts,
    tell_untrained,
    tensor_form,
    trained,
    unshared,
)
from tt_torch.driver.backend import compile_captured
from tt_torch.driver.compilation import Compilation, Input, Metadata, Model, by_itself, inputs_of, on_cpu
from tt_torch.driver.compiled import CompiledFamily, CompiledModel
from tt_torch.driver.containers import with_tensors
from tt_torch.driver.dynamic_shapes import DynamicShapes, family_of, resized
from tt_torch.driver.executor import Executor
from tt_torch.driver.exported import examples_of, refusal, require_parts
from tt_torch.driver.family import Family
from tt_torch.driver.observer import Observer
from tt_torch.driver.overlaps import overlapping
from tt_torch.driver.package.saving import flow_of, programs_of
from tt_torch.driver.program import Program
from tt_torch.driver.shards import has_shards, with_equal_parts
from tt_torch.driver.weight_files import assign, weights_in
from tt_torch.dynamo.examples import VALUES_DECIDE
from tt_torch.dynamo.idle_dropout import without_idle_dropout
from tt_torch.dynamo.tracing import tracing_for_device
from tt_torch.dynamo.types import Argument, Function, Result
from tt_torch.errors import CompileError, ConfigError, TTTorchError, add_note
from tt_torch.torch_private.aot import backward_ahead_of_time, written_inputs
from tt_torch.torch_private.capture import Capture, captured
from tt_torch.torch_private.dynamo import Unsupported, UserError, one_compilation
from tt_torch.torch_private.graph_breaks import line_and_reason
from tt_torch.torch_private.modes import without_modes
from tt_torch.torch_private.tensors import storage_of
from tt_torch.torch_private.tracing import PendingUnbackedSymbolNotFound

WeightSource: TypeAlias = str | Path | Sequence[str | Path]  # "keep", "move", or safetensors files


@overload
def compile_model(
    model: Model | ExportedProgram,
    args: Sequence[Argument] = ...,
    config: CompilerConfig | None = ...,
    *,
    kwargs: Mapping[str, Argument] | None = ...,
    options: Options = ...,
    mode: str | None = ...,
    dynamic_shapes: None = ...,
    sizes: None = ...,
    training: bool = ...,
    weights: WeightSource = ...,
    mesh: DeviceMesh | Sequence[int] | None = ...,
) -> CompiledModel: ...


@overload
def compile_model(
    model: Model | ExportedProgram,
    args: Sequence[Argument] = ...,
    config: CompilerConfig | None = ...,
    *,
    kwargs: Mapping[str, Argument] | None = ...,
    options: Options = ...,
    mode: str | None = ...,
    dynamic_shapes: DynamicShapes,
    sizes: Mapping[str, Sequence[int]] | None = ...,
    training: bool = ...,
    weights: WeightSource = ...,
    mesh: DeviceMesh | Sequence[int] | None = ...,
) -> CompiledFamily: ...


def compile_model(
    model: Model | ExportedProgram,
    args: Sequence[Argument] = (),
    config: CompilerConfig | None = None,
    *,
    kwargs: Mapping[str, Argument] | None = None,
    options: Options = None,
    mode: str | None = None,
    dynamic_shapes: DynamicShapes | None = None,
    sizes: Mapping[str, Sequence[int]] | None = None,
    training: bool = False,
    weights: WeightSource = "keep",
    mesh: DeviceMesh | Sequence[int] | None = None,
) -> CompiledModel | CompiledFamily:
    """Compiles a model for arguments of the forms of `args` and `kwargs`.

    The model is a module, a function or an ExportedProgram; it is not run. Without arguments, an ExportedProgram is
    compiled for the arguments of its export. Tensors of the arguments give their shapes, dtypes and devices; they
    may be fake or on `meta`, which stands for the CPU. Weights of a module may be on `meta`, too: then a package
    without weights can be saved, and the compiled model runs after the module has its weights. Numbers and other values
    of the arguments become a part of the program. `options` and `mode` are as in the backend; `config` is another
    way to give options.
    `dynamic_shapes` has the form of torch.export, with a named Dim for each dimension that changes. With it, the model
    is compiled once per size in the ranges of the Dims, and a CompiledFamily is returned. `sizes` gives the sizes to
    compile for a Dim, by its name; without it, all sizes in the range are compiled.
    With `training`, the backward pass is compiled, too: results have gradients for the parameters, and for the
    arguments among `args` and `kwargs`, that require gradients. Otherwise results have none.
    With `weights="move"`, the first call that runs on the device releases the parameters of the model, as
    `tt_torch.release` does. Then only the device has them. This is for one program without training. Instead of "move",
    `weights` may be the path of a safetensors file, or a list of paths: the module, which may be on `meta`, gets the
    weights that the files have under the names of its `state_dict`. They are mapped from the files until they move.
    `mesh` is a mesh of chips, or its shape: one program then runs on all of them. If the model has DTensors, they say
    what each chip computes; without them, each computes a part of the batch: docs/many_chips.md.
    Raises CompileError when the model cannot be captured as one graph, or has nothing to train; UnsupportedOpError when
    a graph has an op that the device does not run; ConfigError for a family of more than MOST_PROGRAMS programs; and
    TensorFileError if the files of the weights do not fit the module.
    """
    _check_call(model, args, kwargs)
    given = _on_mesh(_for_one_binary(config, options, mode), mesh)
    several, later = training or dynamic_shapes is not None, dict[int, torch.Tensor]()
    if weights != "keep":
        later = _prepare_to_move(weights, model, several)
    of_export = None
    if isinstance(model, ExportedProgram):
        of_export = model.example_inputs
        args, kwargs = (args, kwargs) if args or kwargs else examples_of(model, dynamic_shapes)
        model = model.module()
    elif isinstance(model, torch.nn.Module) and not training:
        _tell_train_mode(model)
    signature = Signature.of(model, of_export[1] if of_export else ())
    call = _bound(signature, args, kwargs or {}, of_export)
    if not training:
        tell_untrained(parts(call))
    if dynamic_shapes is None:
        if sizes is not None:
            raise ConfigError("sizes", sizes, "None without dynamic_shapes")
        made = _compiled_for(model, signature, call, given, training)
        made.releases = _moves(weights, made)
        if isinstance(model, torch.nn.Module):
            assign(model, later)
        return made
    family = family_of(dynamic_shapes, sizes or {}, call)
    return CompiledFamily(family, _members(model, signature, call, given, family, training))


def _bound(
    signature: Signature,
    args: Sequence[Argument],
    kwargs: Mapping[str, Argument],
    of_export: tuple[Sequence[Argument], Mapping[str, Argument]] | None,
) -> Call:
    """The arguments by parameter. Raises ArgumentError for other parts than `of_export`, those of an export."""
    call = signature.bind(args, kwargs)
    if of_export:
        require_parts(call, signature.bind(*of_export))
    return call


def _check_call(model: object, args: object, kwargs: object) -> None:
    """Raises ConfigError for what is no model, or does not hold all its arguments. A tensor would count as its rows."""
    if not callable(model) and not isinstance(model, ExportedProgram):
        raise ConfigError("model", model, "a module, a function or an ExportedProgram")
    if not isinstance(args, (list, tuple)):
        raise ConfigError("args", type(args), "a tuple or a list of all arguments, such as (x,)")
    if not isinstance(kwargs, (Mapping, type(None))):
        raise ConfigError("kwargs", type(kwargs), "a dict of arguments by name")


def _tell_train_mode(model: torch.nn.Module) -> None:
    """Warns if a model, or a part of it, is in train mode, but is compiled without training."""
    name = next((name for name, module in model.named_modules() if module.training), None)
    if name is not None:
        state = "in train mode, and is compiled with dropout and statistics of the batch"
        of = f"the part {name} of the model" if name else "the model"
        user_code.warn(UserWarning(f"{of} is {state}; model.eval() before changes this. Its {UNTRAINED}"))


def _prepare_to_move(weights: WeightSource, model: Model | ExportedProgram, several: bool) -> dict[int, torch.Tensor]:
    """Gives the module the weights of files, if `weights` are paths. Returns the weights that the module gets only
    after it was compiled, because they have no values until then. Raises ConfigError if weights cannot move."""
    given = [weights] if isinstance(weights, (str, Path)) else weights
    paths = [] if weights == "move" else [Path(path) for path in given]
    if (weights != "move" and not paths) or any(path.suffix != ".safetensors" for path in paths):
        raise ConfigError("weights", weights, '"keep", "move", or paths that end in .safetensors')
    if several or not isinstance(model, torch.nn.Module):
        one = "a module that is compiled without training and without dynamic_shapes; tt_torch.release serves others"
        raise ConfigError("weights", weights, f'"keep", unless it is for {one}')
    found = weights_in(paths, model) if paths else {}
    later = {number: x for number, x in found.items() if has_shards([x])}
    assign(model, {number: x for number, x in found.items() if number not in later})
    return later


def _moves(weights: WeightSource, made: CompiledModel) -> bool:
    """Whether the weights move to the device. Raises ConfigError if it has several programs."""
    if weights != "keep" and flow_of(made.compilation.program):
        raise ConfigError("weights", weights, '"keep" for a model with a loop or a `cond`; tt_torch.release serves it')
    return weights != "keep"


def _members(
    model: Model, signature: Signature, call: Call, options: BackendOptions, family: Family, training: bool
) -> list[CompiledModel]:
    members = []
    for chosen in family.members():
        try:
            members.append(_compiled_for(model, signature, resized(call, family, chosen), options, training))
        except Exception as error:
            add_note(error, f"in the program for {', '.join(f'{name} = {size}' for name, size in chosen.items())}")
            raise
    return members


def _compiled_for(
    model: Model, signature: Signature, call: Call, options: BackendOptions, training: bool
) -> CompiledModel:
    """Compiles the model for the arguments of a call. Blank tensors replace the tensors among these arguments."""
    compiled, blank = forms(call), _blank_for_training if training else _blank
    call.arguments = {name: with_tensors(value, lambda _, x: blank(x), name) for name, value in call.arguments.items()}
    with one_compilation(), torch.set_grad_enabled(training), on_cpu(model):
        capture = _captured(model, call)
        inputs = inputs_of(model, capture, call)
        run, executor, programs, metadata = _compiled(capture, inputs, options)
    _require_apart(inputs, metadata)
    if training and len(programs) == 1:
        raise CompileError(
            "nothing to train: no result is computed from a parameter or an argument that requires gradients"
        )
    for i in _shared(capture.graph):
        if inputs[i].is_argument and isinstance(form := compiled[inputs[i].name], TensorForm):
            compiled[inputs[i].name] = form.shared_with_results(inputs[i].tensor)
    tensors = [i for i, given in enumerate(inputs) if isinstance(given.tensor, torch.Tensor)]  # not meshes
    known = [i for i in tensors if inputs[i].tensor.requires_grad] if training else []
    backward = programs[1] if training else None
    made = Compilation(model, call, capture, signature, compiled, programs[0], backward, known, metadata)
    return CompiledModel(made, capture.function(_checked(run, inputs, made)), executor)


def _for_one_binary(config: CompilerConfig | None, options: Options, mode: str | None) -> BackendOptions:
    """The options of a compilation whose result is one binary: nothing runs on the host, or on another chip."""
    if config is not None and options is not None:
        raise ConfigError("config", config, "None if there are options, which have a compiler_config")
    given = BackendOptions.of(options if config is None else config, mode)
    chosen = given.compiler_config
    values = {name: getattr(chosen, name) for name in ("device_map", "buckets")} | {"async_mode": given.async_mode}
    values["fallback"] = chosen.fallback if chosen.fallback == "strict-dtype" else None
    for name, value in values.items():
        if value:
            instead = "sizes that change are `dynamic_shapes`" if name == "buckets" else "use torch.compile"
            raise ConfigError(name, value, f"its default in compile_model, whose result is one binary; {instead}")
    return dataclasses.replace(given, compiler_config=chosen.frozen(fallback="error"))


def _on_mesh(options: BackendOptions, mesh: DeviceMesh | Sequence[int] | None) -> BackendOptions:
    """The options for a mesh of chips. Raises ConfigError for what is no mesh of one or two dimensions."""
    if mesh is None:
        return options
    shape = mesh.shape if isinstance(mesh, DeviceMesh) else mesh
    given: Any = (1, *shape) if isinstance(shape, Sequence) and len(shape) == 1 else shape
    config = options.compiler_config.frozen(mesh_shape=given, automatic_parallelization=given != (1, 1))
    return dataclasses.replace(options, compiler_config=config)


def _blank(x: torch.Tensor) -> torch.Tensor:
    """A tensor of the same form in memory of its own.

    While PyTorch traces, it reads integer scalars, and it reads float scalars that are not NaN.
    """
    if type(x) is not torch.Tensor and not isinstance(x, torch.nn.Parameter) and device_of(x) == x.device:
        return with_equal_parts(x)  # a subclass
    if x.layout != torch.strided:
        return x
    span = 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True)) if x.numel() else 0
    memory = torch.empty(x.storage_offset() + span, dtype=x.dtype, device=device_of(x))
    if not x.dim():
        has_value = device_of(x) == x.device and not x.is_floating_point()
        memory.fill_(x if has_value else torch.nan if x.is_floating_point() else 0)
    return memory.as_strided(x.shape, x.stride(), x.storage_offset())


def _blank_for_training(x: torch.Tensor) -> torch.Tensor:
    """A blank tensor that requires a gradient if `x` does.

    If `x` is the result of an op, the blank tensor is one, too, so that the model may write to it. This is left out if
    `x` has gaps in memory or is a part of larger memory.
    """
    blank = _blank(x).requires_grad_(x.requires_grad)
    result = blank if x.is_leaf else blank.clone()
    same = (result.stride(), result.storage_offset()) == (blank.stride(), blank.storage_offset())
    return result if same else blank


def _captured(model: Model, call: Call) -> Capture:
    try:
        with tracing_for_device():
            capture = captured(by_itself(model), call.args, call.kwargs, without_idle_dropout)
    except (Unsupported, UserError) as failure:
        line, reason = line_and_reason(failure)
        stopped = f"the model cannot be captured as one graph: {reason}\n  at {line or 'an unknown line'}"
        advice = "torch.compile with tt_torch.backend accepts models of several graphs"
        raise CompileError(f"{stopped}\n  {advice}; `tt-torch explain` lists them") from failure
    except PendingUnbackedSymbolNotFound as failure:
        raise CompileError(f"a shape depends on values: {failure}") from failure
    except AssertionError as failure:
        if refused := refusal(failure):
            raise refused from failure
        raise
    if capture is None:
        raise CompileError("nothing was compiled: the model computes no tensor")
    if capture.reads_values:
        raise CompileError("a shape, an index or a branch depends on values of an argument")
    if changed := ", ".join(capture.replaced.constants):
        told = f"the model reads and changes {changed}, and each call of the program reads the value from now"
        user_code.warn(UserWarning(f"{told}; a registered buffer takes its new values"))
    return capture


def _compiled(
    capture: Capture, inputs: Sequence[Input], options: BackendOptions
) -> tuple[Function, Executor, list[Program], Metadata]:
    """Returns the graph on the device, the executor of its forward program, its forward and backward programs, and
    AOTAutograd's metadata."""
    executors: list[Executor] = []
    programs: list[Program] = []
    names = [given.name for given in inputs]
    called = dict(zip([n.name for n in capture.graph.graph.find_nodes(op="placeholder")], names, strict=True))
    observer = Observer(executors.append, program=programs.append, input_name=lambda name: called[name], flag=False)
    try:
        with backward_ahead_of_time(), without_modes():  # as in torch.compile; a mesh of chips is a mode
            run, metadata = capture.compiled(lambda gm, inputs: compile_captured(gm, inputs, options, observer))
    except Exception as failure:
        if isinstance(failure, TTTorchError) or not (isinstance(failure, VALUES_DECIDE) or capture.computes_numbers):
            raise
        raise CompileError(f"a shape, an index or a number depends on values: {failure}") from failure
    if not executors:
        because = "compile_depth is below EXECUTE, the model computes nothing, or a shape or an index depends on values"
        raise CompileError(f"nothing was compiled: {because}")
    for executor in (each for program in programs for each in (programs_of(program) or {}).values()):
        executor.executable.guarded = False
    return run, executors[0], programs, metadata


def _require_apart(inputs: Sequence[Input], metadata: Metadata) -> None:
    """Raises CompileError if AOTAutograd made one input of several, which overlap in memory and are written to."""
    if len(metadata.input_info) < len(inputs):
        group = overlapping([given.tensor for given in inputs])[0]
        names = " and ".join(inputs[i].name for i in group.positions)
        raise CompileError(f"the model writes to {names}, which overlap in memory; give each of them memory of its own")


def _checked(run: Function, inputs: Sequence[Input], made: Compilation) -> Function:
    """The graph with checks of its inputs. Calls without gradients keep nothing for a backward pass."""
    names = [given.name for given in inputs]
    tensors = [given.tensor for given in inputs]
    written = [i for i in written_inputs(made.metadata, tensors) if inputs[i].is_argument]
    known = frozenset(made.trained)
    known_weights = [i for i, x in enumerate(inputs) if not x.is_argument and isinstance(x.tensor, torch.Tensor)]
    weights = {i: (names[i], tensor_form(tensors[i])) for i in known_weights}

    def call(*given: Argument) -> Result:
        check_weights(given, weights)
        unshared(given, names, written)
        if made.backward is None:
            return run(*given)
        if torch.is_grad_enabled():
            trained(given, names, known)
            return run(*given)
        with torch.inference_mode(False), torch.no_grad():  # AOTAutograd saves tensors, which inference mode forbids
            return [x.detach() if x.grad_fn else x for x in run(*given)]

    return call


def _shared(graph: GraphModule) -> list[int]:
    """Positions of the graph's inputs that share memory with one of its outputs."""
    (output,) = graph.graph.find_nodes(op="output")
    memory = {storage_of(node.meta["example_value"]) for node in output.args[0] if _is_tensor(node)}
    inputs = enumerate(graph.graph.find_nodes(op="placeholder"))
    return [i for i, node in inputs if _is_tensor(node) and storage_of(node.meta["example_value"]) in memory]


def _is_tensor(node: object) -> bool:
    return isinstance(node, Node) and isinstance(node.meta.get("example_value"), torch.Tensor)

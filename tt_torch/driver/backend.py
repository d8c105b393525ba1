"""The torch.compile backend: takes a captured graph, runs the stages in order, and returns a callable."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import sympy
import torch
from torch.fx import GraphModule, Node

from tt_torch.config import BackendOptions, CompileDepth, CompilerConfig, Options
from tt_torch.driver import shards
from tt_torch.driver.buckets import BucketedProgram
from tt_torch.driver.cache.graphs import kept
from tt_torch.driver.called_graphs import host_decides, is_one_module, is_plain, prepare
from tt_torch.driver.compile import compile_graph
from tt_torch.driver.data_parallel import compile_data_parallel
from tt_torch.driver.devices import Device, devices_of
from tt_torch.driver.exact_runner import ExactRunner
from tt_torch.driver.executor import Executor
from tt_torch.driver.graph_breaks import tell
from tt_torch.driver.loops import calls_graphs, compile_loops
from tt_torch.driver.observer import NOBODY, Observer, asked_for
from tt_torch.driver.overlaps import once_per_overlap
from tt_torch.driver.partition import HostProgram, compile_with_host_ops, wholly_on_host
from tt_torch.driver.pending import asynchronous
from tt_torch.driver.program import Program, Runner
from tt_torch.driver.report import compiling
from tt_torch.driver.shards import MeshExecutor, compile_sharded, has_shards, refuse_exchange
from tt_torch.driver.sizes import numbers_read, once_per_size
from tt_torch.driver.stages import compile_in_stages
from tt_torch.driver.unmatched import tell_idle, tell_unmatched, tell_wide
from tt_torch.dynamo import loop_gradients, python_kernels, repeated_elements
from tt_torch.dynamo.buckets import symbols_of
from tt_torch.dynamo.buckets.padding import Layouts
from tt_torch.dynamo.checks import defer_checks
from tt_torch.dynamo.control_flow import write_out
from tt_torch.dynamo.decompositions import DECOMPOSITIONS
from tt_torch.dynamo.decompositions.custom_ops import register_late_ops
from tt_torch.dynamo.exactness.plan import make_exact
from tt_torch.dynamo.examples import VALUES_DECIDE, with_examples
from tt_torch.dynamo.idle_dropout import without_idle_dropout
from tt_torch.dynamo.input_forms import without_form_changes
from tt_torch.dynamo.interface import is_tensor, layer_names, name_inputs, real_tensors_only, source
from tt_torch.dynamo.passes.promotion import promote
from tt_torch.dynamo.passes.rewriting import as_function
from tt_torch.dynamo.python_numbers import without_python_numbers
from tt_torch.dynamo.shared_memory import memory_as_in_eager, views_of_inputs
from tt_torch.dynamo.states import mark, states_of, written_inputs
from tt_torch.dynamo.streams import around, without_streams
from tt_torch.dynamo.strided_views import in_memory_of_eager
from tt_torch.dynamo.tracing import partition, traced_for_device
from tt_torch.dynamo.types import Function
from tt_torch.dynamo.wrong_captures import reason_of
from tt_torch.errors import ArgumentError, AsyncError, ConfigError, TTTorchError
from tt_torch.mlir import guard
from tt_torch.torch_private.aot import (
    TracingContext,
    aot_autograd,
    boxed,
    capturing,
    correct,
    make_boxed_func,
)
from tt_torch.torch_private.dynamo import RestartAnalysis, compiled_within
from tt_torch.torch_private.graph_breaks import told_of_graph_breaks
from tt_torch.torch_private.tensors import DataDependentOutputException

__all__ = ["BackendOptions", "CompilerConfig", "backend"]


@told_of_graph_breaks(tell)
@traced_for_device
@compiled_within(lambda frame: compiling())
def backend(
    gm: GraphModule, example_inputs: Sequence[object], options: Options = None, mode: str | None = None
) -> Function:
    """Compiles a captured graph for a Tenstorrent device: `torch.compile(model, backend=tt_torch.backend)`.

    `options` is a BackendOptions, a CompilerConfig, or a dict of their fields. Environment variables override them.
    `mode` is a mode of torch.compile. If it has no effect here, or only a part of it, a warning says why. Ops that the
    device does not support run in eager PyTorch with a HostFallbackWarning, or raise UnsupportedOpError. Lines that
    Dynamo leaves to Python give a GraphBreakWarning, or raise GraphBreakError. `CompilerConfig.fallback` chooses
    between them.
    """
    return compile_captured(gm, example_inputs, BackendOptions.of(options, mode))


def compile_captured(
    gm: GraphModule, example_inputs: Sequence[object], options: BackendOptions, observer: Observer = NOBODY
) -> Function:
    """The backend, with options that are complete: environment variables are not read any more."""
    config = options.compiler_config
    observer = asked_for(config, observer)
    gm, before, after = without_streams(gm)
    gm = without_idle_dropout(gm)
    gm, example_inputs, with_numbers = without_python_numbers(gm, example_inputs)
    refuse_exchange(gm, example_inputs)
    if has_shards(example_inputs):
        run = compile_sharded(gm, example_inputs, options, partial(_aot, observer=observer))
    elif config.automatic_parallelization:
        run = compile_data_parallel(gm, example_inputs, options, partial(_aot, observer=observer))
    elif config.mesh_shape != (1, 1):
        without = "(1, 1) for a program without DTensors, or automatic_parallelization=True, which splits the batch"
        raise ConfigError("mesh_shape", config.mesh_shape, without)
    elif any(isinstance(value, torch.SymInt) for value in example_inputs) and not config.buckets:
        build = partial(_of_concrete_sizes, options=options, observer=observer)
        run = once_per_size(gm, [], partial(once_per_overlap, build=build, fallback=config.fallback))
    else:
        build = partial(_in_memory_of_eager, options=options, observer=observer)
        run = once_per_overlap(gm, example_inputs, build, config.fallback)
    run = around(with_numbers(run), before, after)
    return asynchronous(gm, run, config, observer.input_name) if options.async_mode else run


def _in_memory_of_eager(
    gm: GraphModule, example_inputs: Sequence[object], options: BackendOptions, observer: Observer
) -> Function:
    """The graph's program, which comes from the cache if it is there. Its results have the strides of eager PyTorch,
    and share memory as in eager PyTorch."""

    def compile_for(examples: Sequence[object], observer: Observer) -> Function:
        return _aot(gm, examples, options.compiler_config, options, observer)

    run = kept(gm, example_inputs, options, observer, compile_for)
    return memory_as_in_eager(gm, run)


def _of_concrete_sizes(
    gm: GraphModule, inputs: Sequence[object], options: BackendOptions, observer: Observer
) -> Function:
    """The program of a graph with symbolic sizes, for the sizes of one call. Its results share memory as in eager
    PyTorch. For a graph that also reads values, `_aot` calls this function again with the values."""
    try:
        gm = with_examples(gm, inputs)
    except DataDependentOutputException:
        return _aot(gm, inputs, options.compiler_config, options, observer)
    run = _aot(gm, inputs, options.compiler_config, options, observer)
    return memory_as_in_eager(gm, run)


@compiling()
def _aot(
    gm: GraphModule,
    example_inputs: Sequence[object],
    config: CompilerConfig,
    options: BackendOptions,
    observer: Observer,
) -> Function:
    """Lets AOTAutograd make the graph functional. Its wrapper handles inputs that are mutated or aliased.

    Raises ArgumentError if AOTAutograd would make a wrong graph of it, and no graph is allowed to run on the host.
    """
    gm = without_form_changes(gm)
    reason, instead = reason_of(gm)
    if reason:
        return _eager(gm, reason, instead, config)
    captured, gm = gm, in_memory_of_eager(repeated_elements.with_views(gm))
    guard.SERVER.start()  # it gets ready while the graph is traced
    ours: list[Exception] = []  # our own errors after the capture; they do not send the graph to the host
    compile_one = partial(_compile, config=config, options=options, observer=observer)
    try:
        with capturing(gm), python_kernels.put_aside():
            given = gm.graph.find_nodes(op="placeholder")
            names = [observer.input_name(source(node)) for node in given]
            on_mesh = shards.graphs_on(config.mesh_shape, given)
            made: Function = _capture(names, config, compile_one, ours, on_mesh)(gm, example_inputs)
            return made
    except (TTTorchError, RestartAnalysis):  # Dynamo restarts with what AOTAutograd has found out
        raise
    # for example a shape that depends on values, or a custom op without a fake implementation
    except Exception as error:
        if isinstance(error, DataDependentOutputException) and loop_gradients.takes_gradient(gm):
            return _eager(gm, loop_gradients.REASON, loop_gradients.INSTEAD, config)
        numbers = numbers_read(gm, example_inputs)
        one_chip = config.mesh_shape == (1, 1)
        if one_chip and numbers and isinstance(error, DataDependentOutputException):
            build = partial(_of_concrete_sizes, options=options, observer=observer)
            return once_per_size(gm, numbers, partial(once_per_overlap, build=build, fallback=config.fallback))
        if config.fallback == "error" or error in ours:
            raise
        return wholly_on_host(captured, f"AOTAutograd cannot capture it: {' '.join(str(error).split())}")


def _eager(gm: GraphModule, reason: str, instead: str, config: CompilerConfig) -> Function:
    """Lets eager PyTorch run a graph of which AOTAutograd would make a wrong graph. Raises ArgumentError if no graph is
    allowed to run on the host."""
    if config.fallback == "error":
        raise ArgumentError(f"{reason}; {instead}")
    return wholly_on_host(gm, reason)


def _capture(
    names: Sequence[str],
    config: CompilerConfig,
    compile_one: Callable[..., Function],
    errors: list[Exception],
    on_mesh: Callable[[GraphModule], None],
) -> Function:
    """AOTAutograd with our compilers of forward and backward graphs, which add their errors to `errors`. Inputs get the
    `names`."""
    register_late_ops()
    buckets: dict[sympy.Symbol, tuple[int, ...]] = {}
    layouts: Layouts = {}

    def compile_forward(graph: GraphModule, inputs: Sequence[object]) -> Function:
        metadata = TracingContext.get().fw_metadata
        correct(metadata)
        name_inputs(graph, names)
        if config.precision or config.device_map:
            tell_unmatched(found := layer_names(graph.graph), config)
            tell_idle(found, config)
        tell_wide(lambda: any(_is_bfloat16(node) for node in graph.graph.nodes), config)
        on_mesh(graph)
        roles = _roles(len(inputs))
        if not _is_symbolic(graph):
            return compile_one(graph, roles, seen=metadata.num_forward_returns)
        buckets.update(symbols_of(graph, config.buckets))
        return boxed(BucketedProgram(graph, roles, buckets, DECOMPOSITIONS, compile_one, layouts))

    def compile_backward(graph: GraphModule, inputs: Sequence[object]) -> Function:
        roles = ["input"] * len(inputs)
        on_mesh(graph)
        if not _is_symbolic(graph):
            return compile_one(graph, roles)
        return boxed(BucketedProgram(graph, roles, buckets, DECOMPOSITIONS, compile_one, layouts))

    capture: Function = aot_autograd(
        fw_compiler=lambda *args: _noting(errors, compile_forward, *args),
        bw_compiler=lambda *args: _noting(errors, compile_backward, *args),
        partition_fn=partition,
        decompositions=DECOMPOSITIONS,
    )
    return capture


def _is_bfloat16(node: Node) -> bool:
    return getattr(node.meta.get("val"), "dtype", None) == torch.bfloat16


def _noting(errors: list[Exception], function: Callable[..., Function], *args: object) -> Function:
    """Calls the function and keeps its errors in `errors`, except those about sizes that depend on values."""
    try:
        return function(*args)
    except VALUES_DECIDE:
        raise
    except Exception as error:
        errors.append(error)
        raise


def _is_symbolic(gm: GraphModule) -> bool:
    return any(
        isinstance(size, torch.SymInt)
        for node in gm.graph.find_nodes(op="placeholder")
        for value in [node.meta.get("val")]
        for size in (value.shape if isinstance(value, torch.Tensor) else [value])
    )


def _roles(count: int) -> list[str]:
    """The roles of a forward graph's inputs: "parameter" if it stays on the device, otherwise "input".

    Parameters and buffers stay on the device, unless the graph writes to them.
    """
    metadata = TracingContext.get().fw_metadata
    static = set(metadata.static_input_indices) - set(metadata.mutated_inp_runtime_indices)
    return ["parameter" if i in static else "input" for i in range(count)]


def _compile(
    gm: GraphModule,
    roles: list[str],
    config: CompilerConfig,
    options: BackendOptions,
    observer: Observer,
    seen: int = 0,
) -> Function:
    """Compiles a functional graph, which is changed on the way, into a function of its inputs.

    If some of its first `seen` outputs are views of one memory, or of an input, then the results are, too.
    """
    (output,) = gm.graph.find_nodes(op="output")
    if not any(is_tensor(value) for value in output.args[0]):
        nothing: Function = make_boxed_func(gm.forward)
        return nothing
    made = _program(gm, roles, config, options, observer, seen)
    observer.program(made)
    return boxed(made)


def _program(
    gm: GraphModule,
    roles: Sequence[str],
    config: CompilerConfig,
    options: BackendOptions,
    observer: Observer,
    seen: int = 0,
) -> Program:
    """Compiles a functional graph that returns tensors: see _compile."""
    written = written_inputs(gm)
    views = views_of_inputs(gm, seen)
    gm = write_out(gm, DECOMPOSITIONS, host_decides(config, observer))
    if is_one_module(config, observer):
        prepare(gm)
    checks = defer_checks(gm)
    program, interface = real_tensors_only(gm, DECOMPOSITIONS, seen)
    if interface.seeds and options.async_mode:
        raise AsyncError("the graph draws random numbers, and the order of its calls decides which")
    promote(program.graph)
    updates = states_of(written, interface, program)
    runner = _runner(program, interface.roles(roles), updates, config, options, observer)
    return Program(interface, runner, checks, views)


@dataclass(frozen=True)
class _Compiler:
    """Compiles the graphs of one program, and parts of them, for its devices."""

    config: CompilerConfig
    options: BackendOptions
    observer: Observer
    devices: Mapping[int, Device]  # by the numbers in `device_map`

    def whole(self, gm: GraphModule, roles: Sequence[str]) -> Runner:
        """The runner of a graph whose inputs have these roles."""
        if self.config.device_map:
            return compile_in_stages(self._on_chip, gm, roles, dict(self.config.device_map))
        return self._on_chip(gm, roles)

    def _on_chip(self, gm: GraphModule, roles: Sequence[str], chip: int = 0) -> Runner:
        """The runner of a stage; the host computes ops for which the device has no form."""
        compile_one = partial(self._piece, chip)
        if self.config.fallback == "error":
            return compile_one(gm, roles)
        plain = dataclasses.replace(self, config=self.config.frozen(optimizer_overrides=()))
        return compile_with_host_ops(compile_one, partial(plain._piece, chip), gm, roles, self._bodies())

    def _bodies(self) -> Callable[[GraphModule, Sequence[str]], Program] | None:
        """The compiler of graphs that ops of a graph call; None if they cannot be programs of their own."""
        if not is_plain(self.config, self.observer):
            return None
        outer = self.observer
        inner = Observer(reached=outer.reached, flag=outer.flag)
        return partial(_program, config=self.config, options=self.options, observer=inner)

    def _piece(self, chip: int, gm: GraphModule, roles: Sequence[str]) -> Runner:
        """The runner of a graph. The device supports all ops of this graph."""
        config, device, caches = self.config, self.devices[chip], self.options.caches
        if self.observer.make_executor:
            return self.observer.make_executor(gm, roles, config, device).kept_in(caches)
        compiled = compile_graph(gm, roles, config, self.observer.reached)
        if config.compile_depth != CompileDepth.EXECUTE:
            gm.recompile()
            return lambda inputs: gm(*inputs)
        if config.mesh_shape != (1, 1):
            return MeshExecutor(compiled, device, shards.varying_results(gm.graph)).kept_in(caches)
        return Executor(compiled, device).kept_in(caches)


def _runner(
    program: GraphModule,
    roles: list[str],
    updates: dict[int, int],
    config: CompilerConfig,
    options: BackendOptions,
    observer: Observer,
) -> Runner:
    if observer.take_graph:
        return observer.take_graph(program, roles, config)
    observer.graph(program)
    compiler = _Compiler(config, options, observer, devices_of(program, options))
    if calls_graphs(program) and is_one_module(config, observer):
        return compile_loops(program, roles, options, compiler.devices[0], observer)
    eager = as_function(program) if config.mesh_shape == (1, 1) else None  # the host cannot exchange values of chips
    plan = make_exact(program, strict=config.fallback == "strict-dtype", flag=observer.flag)
    if not plan.flagged:  # if the flag is false, the host repeats the call, and needs the inputs as they were
        mark(program, updates)
    device_runner = compiler.whole(program, roles)
    for runner in device_runner.pieces if isinstance(device_runner, HostProgram) else [device_runner]:
        if isinstance(runner, Executor):
            observer.executor(runner)
    observer.compiled(program, roles, device_runner)
    resident = [i for i, role in enumerate(roles) if role != "input"]
    if not plan.check:
        return ExactRunner(device_runner, eager, plan, resident, None)
    # The check has outputs of its own, because the owner of the config asked only about the program.
    apart = dataclasses.replace(compiler, config=dataclasses.replace(config))
    check = apart.whole(plan.check, [roles[i] for i in plan.checked])
    return ExactRunner(device_runner, eager, plan, resident, check)

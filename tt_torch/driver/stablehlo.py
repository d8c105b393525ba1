"""StableHLO modules of any origin as models that are compiled ahead of time."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from io import BytesIO
from typing import TypeAlias

import torch
from torch_mlir import ir

from tt_torch import user_code
from tt_torch.config import CompileDepth, CompilerConfig
from tt_torch.driver.arguments import TensorForm
from tt_torch.driver.compile import compile_module
from tt_torch.driver.devices import Device
from tt_torch.driver.executor import CompiledProgram
from tt_torch.driver.package.contents import Package
from tt_torch.driver.package.loading import LoadedModel, device_for
from tt_torch.driver.package.manifest import OPEN, Json, Manifest, Place, ProgramForm, Weight
from tt_torch.driver.partition import HostFallbackWarning, HostOp
from tt_torch.driver.two_forms import ModelInTwoForms
from tt_torch.driver.unmatched import tell_nameless, tell_unmatched, tell_wide
from tt_torch.dynamo.calls import CHECKS, Check, Interface, Result, require_in_32_bits
from tt_torch.dynamo.exactness.interval import Interval
from tt_torch.dynamo.exactness.limits import Limit
from tt_torch.dynamo.exactness.plan import Float64Warning
from tt_torch.errors import CompileError, UnsupportedOpError
from tt_torch.flow import MAIN, Flow, HostCall
from tt_torch.mlir.context import describe
from tt_torch.mlir.functions import argument_kinds, main, mark_arguments, returned
from tt_torch.mlir.layer_names import write_names
from tt_torch.mlir.mesh import Mesh, mesh_of
from tt_torch.mlir.reading import Source, read_stablehlo
from tt_torch.mlir.splitting import split
from tt_torch.mlir.stablehlo.doubles import first_in_float64
from tt_torch.mlir.stablehlo.dtypes import DTYPES
from tt_torch.mlir.stablehlo.manual import WHOLE
from tt_torch.mlir.stablehlo.shardy_passes import shardings_of
from tt_torch.mlir.stablehlo.wide_integers import check_wide_integers
from tt_torch.mlir.stablehlo.wide_places import may_leave_32_bits, place_wide_integers
from tt_torch.mlir.types import Value
from tt_torch.runtime import Binary
from tt_torch.runtime.mesh import REPLICATED, Sharding, whole_shape

# The device has 32 bits for these.
LARGEST = torch.finfo(torch.float32).max
OF_FLOATS = Interval(-LARGEST, LARGEST)
IN_32_BITS = {
    torch.float64: OF_FLOATS,
    torch.int64: Interval(-(2**31), 2**31 - 1),
    torch.uint64: Interval(0, 2**32 - 1),
}
CPU = torch.device("cpu")
TensorType: TypeAlias = tuple[tuple[int, ...], torch.dtype]  # shape and dtype


def compile_stablehlo(
    source: Source, config: CompilerConfig | None = None, *, device: Device | None = None
) -> LoadedModel:
    """Compiles a StableHLO module for a device; None is the default device.

    `source` is StableHLO as text, the bytes of MLIR bytecode or of a portable artifact, the path of a file with any of
    these, or a module of torch-mlir or of JAX. The program is `main`, or the only public function. The result
    takes tensors in the order of its arguments, or by the names `arg0`, `arg1` and so on. It returns a tensor, or a
    tuple if the program has no or several results. A call with 64-bit integers beyond the range of 32 bits computes
    them on the host, with an ExactnessWarning. It raises InexactError on a mesh, with the option `fallback="error"`,
    and for an op that the host lacks. So does a call with a float64 beyond the range of float32.
    Environment variables override `config`. Raises ModuleFormatError for another source, UnsupportedOpError for an op
    that the device does not support, and CompileError for a type that PyTorch's tensors do not have. The program of one
    chip of a mesh also raises CompileError.

    Parts that each chip computes by itself (`sdy.manual_computation`, JAX's `shard_map`) make it a program for a mesh,
    which takes and returns whole tensors. Then `device` has as many chips. Annotations that split values over several
    chips do the same. They need JAX: without it, they raise ExtraMissingError.
    """
    chosen = (config or CompilerConfig()).for_compilation(of_pytorch=False)
    module = read_stablehlo(source)
    if mesh_of(module.operation) != (1, 1) and WHOLE not in module.operation.attributes and not shardings_of(module):
        raise CompileError(
            "the module is the program of each chip of a mesh, and says nothing about the values of all chips; "
            "docs/stablehlo.md#programs-for-several-chips runs it"
        )
    names = [f"arg{i}" for i in range(len(main(module).arguments))]
    source_again = written_if_wide(module, chosen)
    package = packaged_module(module, names, {}, chosen)
    on = device or device_for(package, chosen)
    if source_again is None:
        return LoadedModel(package, on)
    return ModelInTwoForms(
        package, on, lambda _: packaged_module(read_stablehlo(source_again), names, {}, chosen, exact=True)
    )


def written_if_wide(module: ir.Module, config: CompilerConfig) -> bytes | None:
    """The bytecode of a module for its second form, in which the host computes 64-bit integers. None if it has none, or
    if the host must not compute."""
    if config.fallback == "error" or not may_leave_32_bits(module):
        return None
    written = BytesIO()
    module.operation.write_bytecode(written)
    return written.getvalue()


def packaged_module(
    module: ir.Module,
    names: Sequence[str],
    weights: Mapping[str, torch.Tensor],
    config: CompilerConfig,
    exact: bool = False,
) -> Package:
    """Compiles a module, which is changed on the way. `config` has the overrides of the environment.

    The first arguments of `main` have the `names`, and the last ones are the `weights`, in their order. A call of the
    package is exact for 64-bit integers, or raises InexactError. If `exact` is true, inputs may need 64 bits, and the
    host computes each op that may leave 32 bits, without a warning.
    """
    if config.compile_depth != CompileDepth.EXECUTE:
        raise CompileError(
            f"nothing was compiled: compile_depth is {config.compile_depth.name}, which is below EXECUTE"
        )
    types, results = input_types(module), [(_open_shape(x), _dtype(x)) for x in returned(module)]
    mesh, placed = mesh_of(module.operation), shardings_of(module)
    wide = prepare_wide(module, exact)
    roles = argument_kinds(main(module))[: len(names)] + ["parameter"] * len(weights)
    with module.context:
        mark_arguments(main(module), roles)
    _name_layers(module, [*names, *weights], roles, config)
    flow, programs = compile_steps(module, config, exact)
    if MAIN in programs:
        results = _static(programs[MAIN].binary, results)
    if placed:
        types, results = (_whole(mesh, *each) for each in zip((types, results), placed, strict=True))
    if wide and mesh != (1, 1):
        placed = _with_numbers(placed or ([REPLICATED] * len(types), [REPLICATED] * len(results)))
    if placed:
        programs[MAIN].shardings = placed
    tensors = {f"program/{x}": torch.frombuffer(bytearray(programs[x].binary), dtype=torch.uint8) for x in programs}
    tensors |= {f"weight/{name}": x for name, x in weights.items()}
    inputs = [(False, name) for name in names] + [(True, name) for name in weights]
    ranges = {torch.float64: OF_FLOATS} if exact else IN_32_BITS
    manifest = _checked(_manifest(programs, roles, inputs, types, results, ranges), wide)
    if MAIN not in programs:
        manifest = replace(manifest, flow=flow)
    return Package([manifest], tensors)


def compile_steps(module: ir.Module, config: CompilerConfig, exact: bool) -> tuple[Flow, dict[str, CompiledProgram]]:
    """The flow of a module, which is changed on the way, and its programs. For `exact`, see `packaged_module`."""
    flow, modules = split(module)
    _report(flow, config, exact)
    if MAIN not in modules:
        tell_nameless(config)
    return flow, {name: _compiled(each, config) for name, each in modules.items()}


def prepare_wide(module: ir.Module, exact: bool) -> list[str]:
    """Chooses the ops of the host for 64-bit integers, and returns the nodes that a check can name. Warns of float64 as
    for models of PyTorch, unless this is the second form."""
    place_wide_integers(module, exact)
    if not exact and (op := first_in_float64(module)):
        where = f"{op.name} at {describe(op.location)}"
        user_code.warn(Float64Warning(f"float64 is computed in float32, first by {where}"))
    return check_wide_integers(module)


def _name_layers(module: ir.Module, names: Sequence[str], roles: Sequence[str], config: CompilerConfig) -> None:
    """Writes the names of weights for the options of single layers. Warns of options that have no effect."""
    tell_wide(lambda: "xbf16>" in str(module), config)
    if config.names_layers:
        named = [name if role == "parameter" else "" for name, role in zip(names, roles, strict=True)]
        write_names(module, {}, named)
        tell_unmatched(named, config)


def _with_numbers(placed: tuple[list[Sharding], list[Sharding]]) -> tuple[list[Sharding], list[Sharding]]:
    """The shardings of inputs and results, with one more result: the numbers that all chips give for a check."""
    inputs, results = placed
    return inputs, [*results, (0, 1)]


def _compiled(module: ir.Module, config: CompilerConfig) -> CompiledProgram:
    kinds = argument_kinds(main(module))
    dtypes = [_dtype(value) for value in returned(module)]
    parts = [dtype.to_real() if dtype.is_complex else dtype for dtype in dtypes]
    return CompiledProgram(
        compile_module(module, config), [], kinds, parts, None, compare_weights=config.compare_weights
    )


def _report(flow: Flow, config: CompilerConfig, known: bool) -> None:
    """Warns of the ops of the host, unless they are known. Raises UnsupportedOpError if the option `fallback` is
    "error"."""
    calls = [step for step in flow.all_steps() if isinstance(step, HostCall) and step.reason]
    if not calls or known:
        return
    if config.fallback == "error":
        raise UnsupportedOpError(calls[0].op, "partition", calls[0].location, calls[0].reason)
    counts = Counter((call.op, call.location, call.reason) for call in calls)
    sizes = Counter[tuple[str, str, str]]()
    for call in calls:
        sizes[call.op, call.location, call.reason] += call.bytes
    ops = [HostOp(op, count, where, why, sizes[op, where, why]) for (op, where, why), count in counts.items()]
    user_code.warn(HostFallbackWarning(ops))


def tensor_type(value: Value) -> TensorType:
    """Shape and dtype of a value. Raises CompileError if a PyTorch tensor cannot have them."""
    dtype, kind = _dtype(value), ir.RankedTensorType(value.type)
    if not kind.has_static_shape:
        size = next(i for i in range(kind.rank) if kind.is_dynamic_dim(i))
        raise CompileError(f"dimension {size} of its type {value.type} is open; write the module for fixed sizes")
    return tuple(kind.shape), dtype


def _dtype(value: Value) -> torch.dtype:
    element = str(value.type.element_type) if isinstance(value.type, ir.RankedTensorType) else ""
    if element not in DTYPES:
        raise CompileError(f"no PyTorch tensor has the type {value.type}")
    return DTYPES[element]


def input_types(module: ir.Module) -> list[TensorType]:
    """Shape and dtype of each argument of `main`. Raises CompileError, which names the argument, if it has none."""
    types = []
    for number, argument in enumerate(main(module).arguments):
        try:
            types.append(tensor_type(argument))
        except CompileError as error:
            raise CompileError(f"argument {number} of the module cannot be an input: {error}") from None
    return types


def _manifest(
    programs: Mapping[str, CompiledProgram],
    roles: Sequence[str],
    inputs: Sequence[tuple[bool, str]],
    types: Sequence[TensorType],
    results: Sequence[TensorType],
    ranges: Mapping[torch.dtype, Interval],
) -> Manifest:
    """The manifest of programs. `inputs` has for each input whether it is a weight, and its name. `roles` has roles.
    `ranges` has the values that the inputs of a dtype may have."""
    known = list(zip(inputs, types, strict=True))
    limits = {i: Limit(n, ranges[dtype], "") for i, ((_, n), (_, dtype)) in enumerate(known) if dtype in ranges}
    return Manifest(
        interface=_interface([dtype for _, dtype in types], [dtype for _, dtype in results]),
        views={},
        checks=[],
        limits=limits,
        checked=[],
        resident=[i for i, role in enumerate(roles) if role != "input"],
        programs={
            name: ProgramForm(made.kinds, made.output_dtypes, None, None, made.compare_weights, 0, made.shardings)
            for name, made in programs.items()
        },
        signature=[(name, int(inspect.Parameter.POSITIONAL_OR_KEYWORD)) for weight, name in inputs if not weight],
        forms={name: TensorForm(*form, CPU) for (weight, name), form in known if not weight},
        weights={name: Weight(*form, CPU, (), True) for (weight, name), form in known if weight},
        inputs=list(inputs),
        tokens=0,
        written=[],
        places=[Place(shape, _contiguous(shape), 0, None) for shape, _ in results],
        result=_tree(len(results)),
        versions={name: version(name) for name in ("tt-torch", "torch")},
    )


def _checked(manifest: Manifest, wide: Sequence[str]) -> Manifest:
    """The manifest, in which the last result of the program is the number of a node in `wide` that left 32 bits. A
    program without such nodes has no such result."""
    if not wide:
        return manifest
    count = len(manifest.places) + 1
    interface = replace(manifest.interface, outputs=[...] * count, places=list(range(count)))
    return replace(manifest, interface=interface, checks=[Check(CHECKS[require_in_32_bits], tuple(wide), {})])


def _interface(inputs: Sequence[torch.dtype], results: Sequence[torch.dtype]) -> Interface:
    """Passes tensors through. The program has a last dimension of size 2 for the parts of complex numbers."""
    return Interface(
        inputs=list(range(len(inputs))),
        outputs=[...] * len(results),
        seeds=[],
        complex_inputs=[i for i, dtype in enumerate(inputs) if dtype.is_complex],
        complex_outputs=[i for i, dtype in enumerate(results) if dtype.is_complex],
        strides={},
        places=list(range(len(results))),
    )


def in_a_list(result: Result) -> list[torch.Tensor]:
    """The results of a compiled module, which returns a tensor or a tuple."""
    return [result] if isinstance(result, torch.Tensor) else list(result)


def _whole(mesh: Mesh, parts: Sequence[TensorType], shardings: Sequence[Sharding]) -> list[TensorType]:
    """The types of the whole tensors whose parts on one chip have the types `parts`."""
    return [(whole_shape(shape, way, mesh), dtype) for (shape, dtype), way in zip(parts, shardings, strict=True)]


def _static(binary: bytes, results: Sequence[TensorType]) -> list[TensorType]:
    """The results with the shapes of the program. In the module, a size that follows from constants may be open."""
    shapes = [tuple(spec.shape) for spec in Binary(binary).programs[0].outputs][: len(results)]
    return [(s[:-1] if dtype.is_complex else s, dtype) for s, (_, dtype) in zip(shapes, results, strict=True)]


def _open_shape(x: Value) -> tuple[int, ...]:
    """The shape of a result, with OPEN for each size that its call decides."""
    return tuple(OPEN if x.type.is_dynamic_dim(i) else size for i, size in enumerate(x.type.shape))


def _contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a result, which are zeros if a size of it is open."""
    if OPEN in shape:
        return (0,) * len(shape)
    return tuple(torch.empty(shape, device="meta").stride())


def _tree(count: int) -> Json:
    """The tree of the only result, or of a tuple of results."""
    parts = [{"result": i} for i in range(count)]
    return parts[0] if count == 1 else {"container": "tuple", "keys": [], "parts": parts}

"""Reads a binary as functions that consist of calls of the `ttnn` package.

The generated source, its execution and the conformance check are made from this form.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from importlib.resources import files

import numpy as np

from tt_torch.codegen import calls, quoting, recordings, user_ops
from tt_torch.codegen.ttnn_worker.messages import TensorFacts
from tt_torch.codegen.values import OF_TENSORS, VALUES, WIDTH, Call, Text, names, render, semaphore
from tt_torch.errors import BinaryFormatError, UnsupportedBinaryError
from tt_torch.runtime.mesh import REPLICATED, Parts, Sharding, shardings_of
from tt_torch.wire import custom_ops, facts, locations
from tt_torch.wire.calls import CALLS
from tt_torch.wire.messages import File, MemoryConfig, Record, Value
from tt_torch.wire.messages import Program as Described

# These ops do not become calls of ttnn: the device is an argument, a constant is a weight, and a cached function is
# called by `cached`. Recordings are called by `recorded`, and the functions of a recording by their names.
STRUCTURE = ("GetDeviceOp", "ConstantOp", "LoadCachedOp", *CALLS)
UNNAMED = (*STRUCTURE, "DeallocateOp", "WriteTensorOp", "ExecuteTraceOp")  # ops that do not say what an input is
SEMAPHORE = "CreateGlobalSemaphoreOp"
# LOCAL has the names that generated functions use, and GLOBAL the names that the module around them defines.
LOCAL = frozenset({"inputs", "weights", "device", "ttnn", "np", "cached", "recorded", "main"})
TEXTS = ("template.py.txt", "recorded.py.txt", "main_of_chip.py.txt", "main_of_mesh.py.txt", "ttnn_worker/sharding.py")
GLOBAL = frozenset(
    word for name in TEXTS for word in re.findall(r"\w+", files("tt_torch.codegen").joinpath(name).read_text())
)


@dataclass
class Tensor:
    """A value of a program: its name in the generated source, and its description in the binary."""

    name: str
    shape: list[int]
    dtype: str  # a name of the wire, as `layout` is
    layout: str
    memory_config: MemoryConfig | None  # None on the host
    weight: bool = False  # an input of the public program that stays on the host: a parameter or constant of the model
    sharding: Sharding = REPLICATED  # how an input lies on the chips of a mesh; `shape` is the part of one chip

    def facts(self) -> TensorFacts:
        """The tensor for the worker, with data type, layout and memory config as Python text."""
        dtype, layout, memory_config = (str(render(part)) for part in (self.dtype, self.layout, self.memory_config))
        return {
            "name": self.name,
            "shape": self.shape,
            "dtype": dtype,
            "layout": layout,
            "memory_config": memory_config,
            "sharding": self.sharding,
        }

    def whole(self, mesh_shape: tuple[int, int]) -> list[int]:
        """The shape of the whole tensor. Raises ShardingError if the tensor has no such dimensions."""
        return whole(self.shape, self.sharding, mesh_shape)


def whole(shape: Sequence[int], sharding: Sharding, mesh_shape: tuple[int, int]) -> list[int]:
    """The shape of a tensor whose part on each chip has this shape. Raises ShardingError for dimensions that the tensor
    does not have."""
    sizes = list(shape)
    for count, dim in zip(mesh_shape, sharding, strict=True):
        if dim is not None and dim in range(len(sizes)):
            sizes[dim] *= count
    return list(Parts(tuple(sizes), sharding, mesh_shape).whole)


@dataclass
class Statement:
    op: str  # its key in calls.py
    location: str
    results: list[Tensor]
    value: Call | Text
    callee: str = ""  # the name of the cached function that it calls
    needs_host: bool = False  # the host executes it, or provides a tensor that it reads
    imported: str = ""  # the import that it needs besides the imports of all generated programs
    semaphore: str = ""  # the name of the semaphore that it makes

    def lines(self, indent: int = 0) -> list[str]:
        targets = [self.semaphore] if self.semaphore else [t.name for t in self.results]
        before = f"{', '.join(targets)} = " if targets else ""
        if self.callee and len(targets) == 1:
            before = f"[{targets[0]}] = "  # functions return lists
        if not isinstance(self.value, Call):
            return [f"{' ' * indent}{before}{self.value}"]
        lines = self.value.lines(indent, before)
        if len(lines[0]) <= WIDTH or len(targets) < 2:
            return lines
        pad = " " * indent
        return [f"{pad}(", *(f"{pad}    {name}," for name in targets), *self.value.lines(indent, ") = ")]


@dataclass
class Function:
    name: str  # an identifier
    private: bool
    inputs: list[Tensor]
    outputs: list[str]
    statements: list[Statement] = field(default_factory=list)


@dataclass
class Program:
    functions: list[Function]  # private ones first, so that they are defined before they are used
    constants: dict[str, tuple[Tensor, bytes]]  # the constants that the binary contains
    mesh_shape: tuple[int, int]  # rows and columns of chips; shapes of tensors are those of one chip
    output_shardings: Sequence[Sharding] = ()

    @property
    def main(self) -> Function:
        return next(f for f in self.functions if not f.private)

    @property
    def inputs(self) -> list[Tensor]:
        """The inputs that each call brings. They are on the device, except the inputs of a recording."""
        return [t for t in self.main.inputs if not t.weight]

    @property
    def weights(self) -> list[Tensor]:
        return [t for t in self.main.inputs if t.weight]

    @property
    def needs_host(self) -> list[Statement]:
        """The statements that need the host in every call, even if the weights are the same as in the last call."""
        return [s for s in self.main.statements if s.needs_host]


def numpy_dtype(dtype: str) -> np.dtype:
    """The data type of NumPy arrays for tensors of a wire type; float32 for all types of floats."""
    return np.dtype({"UInt32": "uint32", "Int32": "int32", "UInt16": "uint16", "UInt8": "uint8"}.get(dtype, "float32"))


def from_message(
    message: File,
    input_shardings: Sequence[Sharding] | None = None,
    output_shardings: Sequence[Sharding] | None = None,
) -> Program:
    """Reads a decoded binary. The shardings say how the chips of a mesh have inputs and results; without them, each
    chip has every tensor whole.

    Raises UnsupportedBinaryError, which names all ops without a row in calls.py, BinaryFormatError for a binary that no
    compiler writes, ShardingError, and InputCountError for another number of shardings.
    """
    programs = message["programs"]
    if not any(not program.get("private") for program in programs):
        raise BinaryFormatError("the binary has no public program, so nothing can be called")
    if len(meshes := {facts.mesh_shape(program) for program in programs}) > 1:
        named = " and ".join("x".join(map(str, mesh)) for mesh in sorted(meshes))
        raise UnsupportedBinaryError(f"generated programs are for one mesh, and the binary has programs for {named}")
    ours = [op for p in programs for op in facts.ops(p) if op.name not in STRUCTURE and not custom_ops.op_of(op.record)]
    unknown = calls.missing(op.key for op in ours)
    if unknown:
        raise UnsupportedBinaryError(f"codegen/calls.py has no call of the ttnn package for {', '.join(unknown)}")
    if unread := sorted({field for op in ours for field in calls.unread(op.name, op.record)}):
        raise UnsupportedBinaryError(f"codegen/calls.py has no argument of the ttnn package for {', '.join(unread)}")
    if reductions := {op.record.get("reduce_type", facts.SUM) for op in ours} - {facts.SUM}:
        raise UnsupportedBinaryError(f"the library's collectives only add, and one has reduce_type {min(reductions)}")
    program = _Reader(programs).read()
    inputs, outputs = program.main.inputs, program.main.outputs
    program.output_shardings = shardings_of(output_shardings, len(outputs), "results")
    for tensor, sharding in zip(inputs, shardings_of(input_shardings, len(inputs), "inputs"), strict=True):
        tensor.sharding = sharding
        tensor.whole(program.mesh_shape)
    return program


def node_name(location: str) -> str:
    """The name of an op's last FX node, whose value it computes, as a Python identifier; empty if it has no node."""
    return quoting.identifier((locations.nodes(location) or [""])[-1]).removesuffix("_default")


def _frees(op: facts.Op, cached: AbstractSet[int]) -> bool:
    """Whether an op frees a cached value. Files of tt-mlir free the caller's reference to it; in a generated program,
    `cached` has the same tensor object."""
    return op.name == "DeallocateOp" and any(x.id in cached for x in op.operands)


class _Reader:
    def __init__(self, programs: list[Described]) -> None:
        self.programs = programs
        self.tensors: dict[int, Tensor] = {}  # by their ids, which are unique in the binary
        self.constants: dict[str, tuple[Tensor, bytes]] = {}
        self.functions = _function_names(programs)
        users = {custom_ops.op_of(op.record) for p in programs for op in facts.ops(p)} - {""}
        self.modules = user_ops.aliases(users, LOCAL.union(GLOBAL, self.functions.values()))
        self.reserved = LOCAL.union(self.functions.values(), self.modules.values())
        self.taken = set(self.reserved)
        self.weight_names = _weight_names(programs)

    def read(self) -> Program:
        functions = [self._function(p) for p in self.programs]
        mesh_shape = facts.mesh_shape(self.programs[0])
        return Program(sorted(functions, key=lambda f: not f.private), self.constants, mesh_shape)

    def _function(self, program: Described) -> Function:
        self.tensors = {}
        self.taken = {*self.reserved, *_semaphores(program)}
        private, written = bool(program.get("private")), recordings.written(program)
        inputs = [self._input(i, tensor) for i, tensor in enumerate(facts.inputs(program))]
        for tensor, given in zip(facts.inputs(program), inputs, strict=True):
            given.weight = not (private or tensor.on_device or tensor.id in written)
        made = Function(self.functions[program["name"]], private, inputs, [])
        kept = {t.id for op in facts.ops(program) if op.name == "LoadCachedOp" for t in op.results}
        ops = (op for op in facts.ops(program) if op.name != "GetDeviceOp" and not _frees(op, kept))
        made.statements = [self._statement(op) for op in ops]
        made.outputs = [self._known(tensor.id) for tensor in facts.outputs(program)]
        return made

    def _input(self, index: int, tensor: facts.Tensor) -> Tensor:
        return self._new(tensor, self.weight_names.get(tensor.id) or f"input_{index}")

    def _statement(self, op: facts.Op) -> Statement:
        base = node_name(op.location) or "value"
        if op.name == "LoadCachedOp":
            return self._load_cached(op)
        if op.name == "ConstantOp":
            return self._constant(op, base)
        if op.name in CALLS:
            return self._call(op, base)
        if name := custom_ops.op_of(op.record):
            return self._user_op(op, name, base)
        row = calls.rows()[op.key]
        value = Call(row.function, tuple(self._arguments(row, op.record)))
        function = row.function.rpartition(".")[2]
        name = base if function in base else f"{base}_{function}"
        # The host fills new tensors, so an op without operands needs it.
        needs_host = not op.operands or not all(t.on_device for t in (*op.operands, *op.results))
        made = str(semaphore(op.record["out"])) if op.name == SEMAPHORE else ""
        return Statement(op.key, op.location, self._results(op, name), value, needs_host=needs_host, semaphore=made)

    def _user_op(self, op: facts.Op, name: str, base: str) -> Statement:
        value = user_ops.call_of(op.record, [self._known(ref["global_id"]) for ref in op.record["ins"]], self.modules)
        module, _ = user_ops.function_of(name)
        imported = f"import {module} as {self.modules[module]}"
        # Nobody knows whether the user's function reads something on the host.
        return Statement(op.key, op.location, self._results(op, base), value, needs_host=True, imported=imported)

    def _load_cached(self, op: facts.Op) -> Statement:
        name = op.record["callee_name"]
        if name not in self.functions:
            raise BinaryFormatError(f"an op calls the program {name!r}, which the binary does not have")
        callee = self.functions[name]
        arguments = [self._known(tensor.id) for tensor in op.operands]
        results = self._results(op, quoting.identifier(callee.removeprefix("main_")) or "value")
        positional = (callee, names(arguments), "weights", "device")
        value = Call("cached", tuple(("", p) for p in positional))
        needs_host = any(tensor.on_device for tensor in op.operands)  # an input that is no weight is new in each call
        return Statement(op.key, op.location, results, value, callee, needs_host)

    def _call(self, op: facts.Op, base: str) -> Statement:
        """A call of a program, or of the three programs of a recording."""
        callees = [self.functions[p["name"]] for p in recordings.called(self.programs, op)]
        given = [[self._known(tensor.id) for tensor in group] for group in recordings.operands(op)]
        function, before = ("recorded", callees) if op.name == recordings.TABLE else (callees[0], [])
        positional: list[str | Call] = [*before, *map(names, given), "weights", "device"]
        results, value = self._results(op, base), Call(function, tuple(("", p) for p in positional))
        return Statement(op.key, op.location, results, value, callees[0], needs_host=True)

    def _constant(self, op: facts.Op, base: str) -> Statement:
        results = self._results(op, f"{base}_constant")
        if len(results) != 1:
            raise BinaryFormatError(f"a constant at {op.location} defines a tensor that exists already")
        (result,) = results
        key = f"constant_{len(self.constants)}"
        self.constants[key] = (result, bytes(op.record["input"]))
        if op.record.get("device"):
            value: Call | Text = Call("ttnn.to_device", (("", f"weights[{quoting.literal(key)}]"), ("", "device")))
        else:
            value = Text(f"weights[{quoting.literal(key)}]")
        return Statement(op.key, op.location, [result], value, needs_host=True)

    def _arguments(self, row: calls.Row, record: Record) -> Iterator[tuple[str, str | Call]]:
        for argument in row.arguments:
            value = self._value(argument, record)
            if value is not None or not argument.keyword:
                yield argument.keyword, render(value)

    def _value(self, argument: calls.Argument, record: Record) -> object:
        if argument.path[0].isupper():
            return Text("device" if argument.path == "Device" else argument.path)
        value: Value = record
        for part in argument.path.split("."):
            value = None if value is None else _member(value, part)
        if value is None:
            return None
        if argument.convert in OF_TENSORS:
            return OF_TENSORS[argument.convert](self._known(value["global_id"]))
        if argument.convert:
            value = VALUES[argument.convert](value)
        return self._named(value)

    def _named(self, value: object) -> object:
        """Replaces tensors by their names and the device by `device`, also inside of lists."""
        if facts.is_tensor(value):
            return Text(self._known(value["global_id"]))
        if isinstance(value, dict) and "global_id" in value:
            return Text("device")
        return [self._named(v) for v in value] if isinstance(value, list) else value

    def _known(self, number: int) -> str:
        """The name of a tensor that an op reads."""
        if number not in self.tensors:
            raise BinaryFormatError(f"an op reads tensor {number}, which no input or earlier op defines")
        return self.tensors[number].name

    def _results(self, op: facts.Op, name: str) -> list[Tensor]:
        return [self._new(tensor, name) for tensor in op.results]

    def _new(self, described: facts.Tensor, name: str) -> Tensor:
        unique = quoting.unique(name, self.taken)
        self.taken.add(unique)
        tensor = Tensor(unique, **_placement(described))
        self.tensors[described.id] = tensor
        return tensor


def _placement(tensor: facts.Tensor) -> Record:
    return {
        "shape": list(tensor.shape),
        "dtype": tensor.dtype,
        "layout": tensor.page_layout,
        "memory_config": tensor.memory_config,
    }


def _semaphores(program: Described) -> set[str]:
    """The names of the semaphores that a program makes."""
    return {str(semaphore(op.record["out"])) for op in facts.ops(program) if op.name == SEMAPHORE}


def _member(value: Record, name: str) -> Value:
    """A field of a record, a property of a tensor's descriptor, or a field of a union's only member."""
    if facts.is_tensor(value):
        return _placement(facts.tensor(value))[name]
    if name not in value and len(value) == 1:
        (inner,) = value.values()
        return inner.get(name) if isinstance(inner, dict) else None
    return value.get(name)


def _function_names(programs: list[Described]) -> dict[str, str]:
    """The name of each program's function in the generated text. The public program is `forward`, whatever its name."""
    found: dict[str, str] = {}
    for program in sorted(programs, key=lambda p: bool(p.get("private"))):
        name = program["name"]
        if name in found:
            raise BinaryFormatError(f"two programs have the name {name!r}")
        taken = GLOBAL.union(found.values()) if program.get("private") else found.values()
        found[name] = quoting.unique(quoting.identifier(name) or "function", taken)
    return found


def _weight_names(programs: list[Described]) -> dict[int, str]:
    """Names of the inputs that stay on the host, by id. A name consists of the first FX node that reads the input, and
    of the field's role.

    Example: the field `weight_tensor` of a convolution from the node `conv1` gives `conv1_weight`.
    """
    found: dict[int, str] = {}
    callers = _callers(programs)
    for program in programs:
        hosts = {tensor.id: i for i, tensor in enumerate(facts.inputs(program)) if not tensor.on_device}
        for op in facts.ops(program):
            for field_name, tensor in facts.named_tensors(op.record) if op.name not in UNNAMED else ():
                if tensor.id in hosts:
                    kind = field_name if "weight" in field_name or "bias" in field_name else "weight"
                    name = f"{node_name(op.location) or 'model'}_{kind.removesuffix('_tensor')}"
                    found.setdefault(tensor.id, name)
                    for caller in callers[program["name"]]:
                        if hosts[tensor.id] < len(caller.operands):
                            found.setdefault(caller.operands[hosts[tensor.id]].id, name)
    return found


def _callers(programs: list[Described]) -> dict[str, list[facts.Op]]:
    """The ops that call each program, by its name."""
    found = defaultdict(list)
    for op in (op for p in programs for op in facts.ops(p) if op.name == "LoadCachedOp"):
        found[op.record["callee_name"]].append(op)
    return found

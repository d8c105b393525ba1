"""A binary as functions of statements on the `ttnn` package: what text, execution and the check have in common."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tt_torch.codegen import calls
from tt_torch.codegen.ttnn_worker.messages import TensorFacts
from tt_torch.codegen.values import VALUES, WIDTH, Call, Text, names, render
from tt_torch.errors import UnsupportedBinaryError
from tt_torch.wire import facts, locations
from tt_torch.wire.messages import File, MemoryConfig, Record, Value
from tt_torch.wire.messages import Program as Described

# Ops that are no calls: the device is an argument, constants are weights, cached functions are called.
STRUCTURE = ("GetDeviceOp", "ConstantOp", "LoadCachedOp")
# Names that a generated function has already.
RESERVED = {"inputs", "weights", "device", "ttnn", "np", "cached", "main"}


@dataclass
class Tensor:
    """A value of a program: its name there, and what the binary says about it."""

    name: str
    shape: list[int]
    dtype: str  # wire names, as `layout`
    layout: str
    memory_config: MemoryConfig | None  # None on the host

    def facts(self) -> TensorFacts:
        """As Python text, for the worker."""
        dtype, layout, memory_config = (str(render(part)) for part in (self.dtype, self.layout, self.memory_config))
        return {
            "name": self.name,
            "shape": self.shape,
            "dtype": dtype,
            "layout": layout,
            "memory_config": memory_config,
        }


@dataclass
class Statement:
    op: str  # its key in calls.py
    location: str
    results: list[Tensor]
    value: Call | Text
    callee: str = ""  # of a cached function
    needs_host: bool = False  # to do, or for what it reads

    def lines(self, indent: int = 0) -> list[str]:
        targets = [t.name for t in self.results]
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
    name: str
    private: bool
    inputs: list[Tensor]
    outputs: list[str]
    statements: list[Statement] = field(default_factory=list)


@dataclass
class Program:
    functions: list[Function]  # private ones first, as Python wants definitions before their use
    constants: dict[str, tuple[Tensor, bytes]]  # contents of the binary itself

    @property
    def main(self) -> Function:
        return next(f for f in self.functions if not f.private)

    @property
    def inputs(self) -> list[Tensor]:
        """Inputs of a call, on the device."""
        return [t for t in self.main.inputs if t.memory_config is not None]

    @property
    def weights(self) -> list[Tensor]:
        """Inputs that the program keeps on the host: parameters and constants of the model."""
        return [t for t in self.main.inputs if t.memory_config is None]

    @property
    def needs_host(self) -> list[Statement]:
        """What keeps a device from doing a call by itself once it has done one with the same weights."""
        return [s for s in self.main.statements if s.needs_host]


def numpy_dtype(dtype: str) -> np.dtype:
    """That of arrays with the values of a tensor on the host."""
    return np.dtype({"UInt32": "uint32", "Int32": "int32", "UInt16": "uint16", "UInt8": "uint8"}.get(dtype, "float32"))


def from_message(message: File) -> Program:
    """Raises UnsupportedBinaryError naming every op that calls.py does not describe."""
    programs = message["programs"]
    unknown = calls.missing(op.key for p in programs for op in facts.ops(p) if op.name not in STRUCTURE)
    if unknown:
        raise UnsupportedBinaryError(f"no call of the ttnn package is known for {', '.join(unknown)}")
    return _Reader(programs).read()


def node_name(location: str) -> str:
    """The FX node of an op that came from one, as an identifier; empty for all others."""
    return re.sub(r"\W", "_", locations.only_node(location)[0]).removesuffix("_default")


class _Reader:
    def __init__(self, programs: list[Described]) -> None:
        self.programs = programs
        self.tensors: dict[int, Tensor] = {}  # by id, which is unique in the binary
        self.constants: dict[str, tuple[Tensor, bytes]] = {}
        self.taken = set(RESERVED)
        self.weight_names = _weight_names(programs)

    def read(self) -> Program:
        functions = [self._function(p) for p in self.programs]
        return Program(sorted(functions, key=lambda f: not f.private), self.constants)

    def _function(self, program: Described) -> Function:
        self.tensors = {}
        self.taken = set(RESERVED)
        inputs = [self._input(i, tensor) for i, tensor in enumerate(facts.inputs(program))]
        made = Function(program["name"], bool(program.get("private")), inputs, [])
        ops = list(facts.ops(program))
        last = {node_name(op.location): i for i, op in enumerate(ops)}
        for i, op in enumerate(ops):
            if op.name != "GetDeviceOp":
                made.statements.append(self._statement(op, last[node_name(op.location)] == i))
        made.outputs = [self.tensors[tensor.id].name for tensor in facts.outputs(program)]
        return made

    def _input(self, index: int, tensor: facts.Tensor) -> Tensor:
        return self._new(tensor, self.weight_names.get(tensor.id) or f"input_{index}")

    def _statement(self, op: facts.Op, final: bool) -> Statement:
        base = node_name(op.location) or "value"
        if op.name == "LoadCachedOp":
            return self._load_cached(op)
        if op.name == "ConstantOp":
            return self._constant(op, base)
        row = calls.rows()[op.key]
        value = Call(row.function, tuple(self._arguments(row, op.record)))
        function = row.function.rpartition(".")[2]
        name = base if final or function in base else f"{base}_{function}"
        # New tensors are filled by the host.
        needs_host = not op.operands or not all(t.on_device for t in (*op.operands, *op.results))
        return Statement(op.key, op.location, self._results(op, name), value, needs_host=needs_host)

    def _load_cached(self, op: facts.Op) -> Statement:
        callee = op.record["callee_name"]
        arguments = [self.tensors[tensor.id].name for tensor in op.operands]
        results = self._results(op, callee.removeprefix("main_"))
        positional = (callee, names(arguments), "weights", "device")
        value = Call("cached", tuple(("", p) for p in positional))
        needs_host = any(tensor.on_device for tensor in op.operands)  # computed anew for what is no weight
        return Statement(op.key, op.location, results, value, callee, needs_host)

    def _constant(self, op: facts.Op, base: str) -> Statement:
        (result,) = self._results(op, f"{base}_constant")
        key = f"constant_{len(self.constants)}"
        self.constants[key] = (result, bytes(op.record["input"]))
        if op.record.get("device"):
            value: Call | Text = Call("ttnn.to_device", (("", f'weights["{key}"]'), ("", "device")))
        else:
            value = Text(f'weights["{key}"]')
        return Statement(op.key, op.location, [result], value, needs_host=True)

    def _arguments(self, row: calls.Row, record: Record) -> Iterator[tuple[str, str | Call]]:
        for argument in row.arguments:
            value = self._value(argument, record)
            if value is not None or not argument.keyword:
                yield argument.keyword, render(value)

    def _value(self, argument: calls.Argument, record: Record) -> object:
        if argument.path[0].isupper():
            return Text(argument.path)
        value: Value = record
        for part in argument.path.split("."):
            value = None if value is None else _member(value, part)
        if argument.convert and value is not None:
            value = VALUES[argument.convert](value)
        return self._named(value)

    def _named(self, value: object) -> object:
        """Tensors by their names, the device by that of the argument."""
        if facts.is_tensor(value):
            return Text(self.tensors[value["global_id"]].name)
        if isinstance(value, dict) and "global_id" in value:
            return Text("device")
        return [self._named(v) for v in value] if isinstance(value, list) else value

    def _results(self, op: facts.Op, name: str) -> list[Tensor]:
        return [self._new(tensor, name) for tensor in op.results]

    def _new(self, described: facts.Tensor, name: str) -> Tensor:
        unique, count = name, 1
        while unique in self.taken:
            unique, count = f"{name}_v{count}", count + 1
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


def _member(value: Record, name: str) -> Value:
    """A field; of a tensor also what its descriptor says, and of a union that of its one member."""
    if facts.is_tensor(value):
        return _placement(facts.tensor(value))[name]
    if name not in value and len(value) == 1:
        (inner,) = value.values()
        return inner.get(name) if isinstance(inner, dict) else None
    return value.get(name)


def _weight_names(programs: list[Described]) -> dict[int, str]:
    """Names for the inputs that stay on the host, by id: the node that first reads one, and as what."""
    found: dict[int, str] = {}
    for program in programs:
        callers = _callers(programs, program["name"])
        hosts = {tensor.id: i for i, tensor in enumerate(facts.inputs(program)) if not tensor.on_device}
        for op in facts.ops(program):
            for field_name, tensor in facts.named_tensors(op.record) if op.name not in STRUCTURE else ():
                if tensor.id in hosts:
                    kind = field_name if "weight" in field_name or "bias" in field_name else "weight"
                    name = f"{node_name(op.location) or 'model'}_{kind.removesuffix('_tensor')}"
                    found.setdefault(tensor.id, name)
                    for caller in callers:
                        found.setdefault(caller.operands[hosts[tensor.id]].id, name)
    return found


def _callers(programs: list[Described], name: str) -> list[facts.Op]:
    loads = (op for p in programs for op in facts.ops(p) if op.name == "LoadCachedOp")
    return [op for op in loads if op.record["callee_name"] == name]

"""A binary as functions of statements on the `ttnn` package: what text, execution and the check have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tt_torch.codegen import calls
from tt_torch.codegen.values import VALUES, WIDTH, Call, Text, names, render
from tt_torch.errors import UnsupportedBinaryError

RESULTS = ("out", "output", "outputs", "result", "result_indices", "q_out", "k_out", "v_out")
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
    memory_config: dict | None  # None on the host

    def facts(self) -> dict[str, Any]:
        """As Python text, for the worker."""
        texts = {key: str(render(getattr(self, key))) for key in ("dtype", "layout", "memory_config")}
        return {"name": self.name, "shape": self.shape} | texts


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


def from_message(message: dict) -> Program:
    """Raises UnsupportedBinaryError naming every op that calls.py does not describe."""
    programs = message["programs"]
    unknown = calls.missing(
        calls.key_of(table, record) for p in programs for table, record in _ops(p) if table not in STRUCTURE
    )
    if unknown:
        raise UnsupportedBinaryError(f"no call of the ttnn package is known for {', '.join(unknown)}")
    return _Reader(programs).read()


def _ops(program: dict) -> Iterable[tuple[str, dict]]:
    for op in program["operations"]:
        yield from op["type"].items()


def node_name(location: str) -> str:
    """The FX node in a location such as `loc("relu_1: aten.relu.default"("model.py":12:0))`, as an identifier."""
    found = re.match(r'loc\("([\w.]+): ', location)
    return re.sub(r"\W", "_", found[1]).removesuffix("_default") if found else ""


class _Reader:
    def __init__(self, programs: list[dict]) -> None:
        self.programs = programs
        self.tensors: dict[int, Tensor] = {}  # by id, which is unique in the binary
        self.constants: dict[str, tuple[Tensor, bytes]] = {}
        self.taken = set(RESERVED)
        self.weight_names = _weight_names(programs)

    def read(self) -> Program:
        functions = [self._function(p) for p in self.programs]
        return Program(sorted(functions, key=lambda f: not f.private), self.constants)

    def _function(self, program: dict) -> Function:
        self.tensors = {}
        self.taken = set(RESERVED)
        inputs = [self._input(i, ref) for i, ref in enumerate(program.get("inputs") or [])]
        made = Function(program["name"], bool(program.get("private")), inputs, [])
        last = {node_name(op["loc_info"]): i for i, op in enumerate(program["operations"])}
        for i, op in enumerate(program["operations"]):
            ((table, record),) = op["type"].items()
            if table == "GetDeviceOp":
                continue
            made.statements.append(self._statement(table, record, op["loc_info"], last[node_name(op["loc_info"])] == i))
        made.outputs = [self.tensors[ref["global_id"]].name for ref in program.get("outputs") or []]
        return made

    def _input(self, index: int, ref: dict) -> Tensor:
        return self._new(ref, self.weight_names.get(ref["global_id"]) or f"input_{index}")

    def _statement(self, table: str, record: dict, location: str, final: bool) -> Statement:
        key = calls.key_of(table, record)
        base = node_name(location) or "value"
        if table == "LoadCachedOp":
            return self._load_cached(record, location)
        if table == "ConstantOp":
            return self._constant(record, location, base)
        row = calls.rows()[key]
        value = Call(row.function, tuple(self._arguments(row, record)))
        function = row.function.rpartition(".")[2]
        name = base if final or function in base else f"{base}_{function}"
        refs = [r for f in RESULTS for r in _listed(record.get(f))]
        operands = [ref for _, ref in _operands(record)]
        # New tensors are filled by the host.
        needs_host = not operands or not all(map(_on_device, [*operands, *refs]))
        return Statement(key, location, [self._new(r, name) for r in refs], value, needs_host=needs_host)

    def _load_cached(self, record: dict, location: str) -> Statement:
        callee = record["callee_name"]
        arguments = [self.tensors[r["global_id"]].name for r in record.get("inputs") or []]
        results = [self._new(r, callee.removeprefix("main_")) for r in record["outputs"]]
        positional = (callee, names(arguments), "weights", "device")
        value = Call("cached", tuple(("", p) for p in positional))
        needs_host = any(map(_on_device, record.get("inputs") or []))  # computed anew for what is no weight
        return Statement("LoadCachedOp", location, results, value, callee, needs_host)

    def _constant(self, record: dict, location: str, base: str) -> Statement:
        result = self._new(record["out"], f"{base}_constant")
        key = f"constant_{len(self.constants)}"
        self.constants[key] = (result, bytes(record["input"]))
        if record.get("device"):
            value: Call | Text = Call("ttnn.to_device", (("", f'weights["{key}"]'), ("", "device")))
        else:
            value = Text(f'weights["{key}"]')
        return Statement("ConstantOp", location, [result], value, needs_host=True)

    def _arguments(self, row: calls.Row, record: dict) -> Iterable[tuple[str, str | Call]]:
        for argument in row.arguments:
            value = self._value(argument, record)
            if value is not None or not argument.keyword:
                yield argument.keyword, render(value)

    def _value(self, argument: calls.Argument, record: dict) -> Any:
        if argument.path[0].isupper():
            return Text(argument.path)
        value: Any = record
        for part in argument.path.split("."):
            value = None if value is None else _member(value, part)
        if argument.convert and value is not None:
            value = VALUES[argument.convert](value)
        return self._named(value)

    def _named(self, value: Any) -> Any:
        """Tensors by their names, the device by that of the argument."""
        if isinstance(value, dict) and "global_id" in value:
            return Text(self.tensors[value["global_id"]].name if "desc" in value else "device")
        return [self._named(v) for v in value] if isinstance(value, list) else value

    def _new(self, ref: dict, name: str) -> Tensor:
        unique, count = name, 1
        while unique in self.taken:
            unique, count = f"{name}_v{count}", count + 1
        self.taken.add(unique)
        tensor = Tensor(unique, list(ref["desc"]["shape"]), **_placement(ref))
        self.tensors[ref["global_id"]] = tensor
        return tensor


def _listed(value: Any) -> list[dict]:
    return value if isinstance(value, list) else [value] if value else []


def _placement(ref: dict) -> dict[str, Any]:
    memory = ref["desc"]["layout"]["memory_desc"]
    tiled = memory["tile_shape"] == {"y": 32, "x": 32}
    return {
        "dtype": memory["data_type"],
        "layout": "Tile" if tiled else "RowMajor",
        "memory_config": memory.get("memory_config") if memory["storage_type"] == "Device" else None,
    }


def _member(value: dict, name: str) -> Any:
    """A field; of a tensor also what its descriptor says, and of a union that of its one member."""
    if "desc" in value:
        return {"shape": value["desc"]["shape"], **_placement(value)}[name]
    if name not in value and len(value) == 1:
        (inner,) = value.values()
        return inner.get(name) if isinstance(inner, dict) else None
    return value.get(name)


def _weight_names(programs: list[dict]) -> dict[int, str]:
    """Names for the inputs that stay on the host, by id: the node that first reads one, and as what."""
    found: dict[int, str] = {}
    for program in programs:
        callers = _callers(programs, program["name"])
        hosts = {r["global_id"]: r["global_id"] for r in program.get("inputs") or [] if not _on_device(r)}
        for table, record, location in _records(program):
            for field_name, ref in _operands(record):
                if ref["global_id"] in hosts and table not in STRUCTURE:
                    kind = field_name if "weight" in field_name or "bias" in field_name else "weight"
                    name = f"{node_name(location) or 'model'}_{kind.removesuffix('_tensor')}"
                    found.setdefault(ref["global_id"], name)
                    position = [r["global_id"] for r in program["inputs"]].index(ref["global_id"])
                    for caller in callers:
                        found.setdefault(caller["inputs"][position]["global_id"], name)
    return found


def _callers(programs: list[dict], name: str) -> list[dict]:
    calls_of = (r for p in programs for t, r, _ in _records(p) if t == "LoadCachedOp")
    return [r for r in calls_of if r["callee_name"] == name]


def _records(program: dict) -> Iterable[tuple[str, dict, str]]:
    for op in program["operations"]:
        ((table, record),) = op["type"].items()
        yield table, record, op["loc_info"]


def _operands(record: dict) -> Iterable[tuple[str, dict]]:
    for name, value in record.items():
        for ref in _listed(value) if name not in RESULTS else ():
            if isinstance(ref, dict) and "desc" in ref:
                yield name, ref


def _on_device(ref: dict) -> bool:
    return ref["desc"]["layout"]["memory_desc"]["storage_type"] == "Device"

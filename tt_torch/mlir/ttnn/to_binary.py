"""A TTNN module as a binary message. The code is the same for all ops: it reads an op's table, operands and attributes
from the op's declaration, and the form of each value from the wire table."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.mlir import ods
from tt_torch.mlir.context import brief
from tt_torch.mlir.functions import defined, is_main
from tt_torch.mlir.mesh import mesh_of
from tt_torch.mlir.stablehlo.attrs import elements
from tt_torch.mlir.ttnn import text
from tt_torch.mlir.ttnn.dialect import DEVICE, wire_fields
from tt_torch.mlir.ttnn.layout import Layout, layout_of, memory_config
from tt_torch.mlir.types import Attr, Function
from tt_torch.wire import bfloat16, binary
from tt_torch.wire.encode import encode
from tt_torch.wire.facts import TILE

Message: TypeAlias = dict[str, Any]  # a table of the wire format: the values of its fields by name
RECORDING = ("allocate_slots", "capture", "execute")  # the programs of a recording
MEMORY_CONFIGS = ("memory_config", "memcfg", "output_memory_config")
# The defaults of these fields in every op that has them, as in tt-mlir's compiler: all bits of float32 in products and
# sums, and the address tables of convolutions in DRAM, so that the data can use all of L1. An empty attribute leaves
# the whole field to the library.
SETTINGS: Message = {
    "compute_config": {"math_fidelity": "HiFi4", "fp32_dest_acc_en": True},
    "conv2d_config": {"enable_kernel_stride_folding": False, "config_tensors_in_dram": True},
}


def translate(module: ir.Module, config: CompilerConfig) -> bytes:
    """The binary of a module whose first function is the entry. The entry calls the others, or they call each other."""
    return encode(_Translator(module, config).message(), config.schema)


class _Translator:
    """One module's translation: tensor ids are unique in the binary, programs are known by name."""

    def __init__(self, module: ir.Module, config: CompilerConfig) -> None:
        self.config = config
        self.source = text.of_module(module)
        self.functions = defined(module)
        self.declared = {f.name.value: f for f in module.body.operations if f not in self.functions}
        rows, columns = self.chips = mesh_of(module)
        self.mesh = {"y": rows, "x": columns}
        self.texts = text.by_function(self.source, self.functions)
        self.functions.sort(key=is_main, reverse=True)  # the wire format wants public programs first
        self.index = {f.name.value: i for i, f in enumerate(self.functions)}
        self.refs: dict[ir.Value, Message] = {}
        # Many values share a type, and many ops share an attribute or a location. Each of these is read once.
        self.tensors: dict[ir.Type, _Tensor] = {}
        self.system = binary.system(config.arch, config.system_desc)
        self.columns: int = binary.first_chip(self.system)["grid_size"]["x"]  # the cores that each chip has in a row
        self.values: dict[ir.Attribute, Attr] = {}
        self.locations: dict[ir.Attribute, str] = {}

    def message(self) -> Message:
        return binary.header(self.config.schema) | {
            "system_desc": self.system,
            "mlir": {"name": "ttnn", "source": self.source},
            "programs": [self._program(f) for f in self.functions],
        }

    def _program(self, function: Function) -> Message:
        *body, terminator = (op.operation for op in function.regions[0].blocks[0].operations)
        inputs = [self._input(a) for a in function.arguments]
        lines = self.texts[function.name.value][: len(body)]
        return {
            "name": function.name.value,
            "inputs": inputs,
            "operations": [self._get_device(), *map(self._operation, body, lines)],
            "outputs": [self._ref(v) for v in terminator.operands],
            "debug_info": {"golden_info": {"golden_map": []}},
            "private": not is_main(function),
            "mesh_shape": self.mesh,
        }

    def _get_device(self) -> Message:
        """A program starts by binding the device that its ops name. This op has no line of the user's program."""
        chips = list(range(math.prod(self.chips)))
        bound = {"mesh": self.mesh, "offset": {"y": 0, "x": 0}, "chip_ids": chips, "out": DEVICE}
        return {"type": {"GetDeviceOp": bound}, "debug_info": "", "loc_info": "loc(unknown)"}

    def _tensor(self, value: ir.Value) -> _Tensor:
        kind = value.type
        found = self.tensors.get(kind)
        if found is None:
            found = self.tensors[kind] = _tensor(kind, self.columns)
        return found

    def _ref(self, value: ir.Value) -> Message:
        ref = self.refs.get(value)
        if ref is None:
            ref = self.refs[value] = {"global_id": len(self.refs) + 1, "desc": self._tensor(value).desc}  # 0 is null
        return ref

    def _input(self, value: ir.Value) -> Message:
        """An input of a program for a mesh is described as tt-mlir does it: each chip has its part before the call."""
        ref = self._ref(value)
        if self.chips != (1, 1):
            ref["desc"] = ref["desc"] | {"shard_status": "Presharded"}
        return ref

    def _operation(self, op: ir.Operation, line: str) -> Message:
        record = self._call(op) if op.name == "func.call" else self._record(op)
        return {"type": record, "debug_info": line, "loc_info": self._location(op.location)}

    def _location(self, location: ir.Location) -> str:
        key = location.attr  # locations are hashed by identity, their attributes by content
        found = self.locations.get(key)
        if found is None:
            found = self.locations[key] = str(brief(location))
        return found

    def _record(self, op: ir.Operation) -> Message:
        declared = ods.OPS[op.name]
        record: Message = dict(declared.facts["fixed"])
        for name, value in ods.operands_of(op).items():
            record[name] = [self._ref(v) for v in value] if isinstance(value, list) else value and self._ref(value)
        refs = list(map(self._ref, op.results))
        listed = declared.facts.get("vector")
        record |= self._attributes(op) | ({listed: refs} if listed else dict(zip(declared.results, refs, strict=True)))
        derived, settings = _open_fields(op.name)
        for field in derived:
            if field not in record:
                record[field] = self._derive(field, op)
        for field in settings:
            given = record.get(field)
            record[field] = None if given == {} else SETTINGS[field] | (given or {})
        return {declared.facts["table"]: record}

    def _attributes(self, op: ir.Operation) -> Message:
        attributes = op.attributes
        values = {name: self._value(attributes[name]) for name in ods.OPS[op.name].attrs if name in attributes}
        if op.name == "ttnn.constant":
            values["input"] = _constant_bytes(attributes["input"], self._tensor(op.results[0]).layout)
        return values

    def _value(self, attribute: ir.Attribute) -> Attr:
        if attribute not in self.values:
            self.values[attribute] = ods.from_attr(attribute)
        return self.values[attribute]

    def _derive(self, field: str, op: ir.Operation) -> Message | str | list[int] | None:
        """A field of placement or type, from the layout of the op's result."""
        result = self._tensor(op.results[0])
        layout = result.layout
        if (
            op.name == "ttnn.to_layout"
            and field == "dtype"
            and self._tensor(op.operands[0]).layout.dtype == layout.dtype
        ):
            return None  # it converts nothing
        if op.name == "ttnn.to_layout" and layout.sharded:
            # Rows stay where their tiles lie. The library does not take their place, because it has no tiles.
            return {"layout": layout.page_layout}.get(field)
        if field in MEMORY_CONFIGS:
            return result.desc["layout"]["memory_desc"]["memory_config"]
        if field == "device":
            return DEVICE if layout.on_device else None
        return {"layout": layout.page_layout, "shape": result.desc["shape"]}.get(field, layout.dtype)

    def _call(self, op: ir.Operation) -> Message:
        """A call of a const-eval function, of the ops of a recording, or of a recording (see passes/trace.py)."""
        name = op.attributes["callee"].value
        record: Message = {"inputs": [self._ref(v) for v in op.operands], "outputs": [self._ref(r) for r in op.results]}
        if name in self.declared:
            parts = self.declared[name].attributes
            ids = {f"{part}_program_id": self.index[parts[f"{part}_callee"].value] for part in RECORDING}
            return {"CaptureOrExecuteTraceOp": record | {"device": DEVICE} | ids}
        index = self.index[name]
        if not op.results:
            return {"FuncCallOp": record | {"program_id": index}}
        cached = {"callee_name": name, "program_idx": index, "program_hash": self._hash(self.functions[index])}
        return {"LoadCachedOp": record | cached}

    def _hash(self, function: Function) -> str:
        """Equal hashes must mean equal functions. The hash is made from all attributes except the name, the text of the
        ops, and the constants, which the text leaves out."""
        attributes = (f"{k} = {v}" for k, v in function.attributes.items() if k != "sym_name")
        digest = hashlib.sha256("\n".join([*attributes, *self.texts[function.name.value]]).encode())
        for op in function.regions[0].blocks[0].operations:
            if op.operation.name == "ttnn.constant":
                digest.update(elements(op.operation.attributes["input"]).tobytes())
        return digest.hexdigest()


@cache
def _open_fields(op: str) -> tuple[list[str], list[str]]:
    """Fields of an op's wire table that are derived from its result unless given, and those that settings complete."""
    facts = ods.OPS[op].facts
    fields = wire_fields(facts["table"])
    derived = [f for f in fields if f in MEMORY_CONFIGS or f in facts.get("derived", ())]
    return derived, [f for f in fields if f in SETTINGS and f not in derived]


def _constant_bytes(value: ir.Attribute, layout: Layout) -> bytes:
    data = elements(value)
    return (bfloat16.halves(data) if layout.dtype == "BFloat16" else data).tobytes()


@dataclass(frozen=True, slots=True)
class _Tensor:
    """The layout of a tensor type, and its TensorDesc."""

    layout: Layout
    desc: Message


def _tensor(kind: ir.Type, columns: int) -> _Tensor:
    layout, dims = layout_of(kind), list(kind.shape)
    side = TILE if layout.tiled else 1
    memory = {
        "storage_type": "Device" if layout.on_device else "Host",
        "tile_shape": {"y": side, "x": side},
        "data_type": layout.dtype,
        "memory_config": memory_config(layout, dims, columns),
    }
    desc = {
        "shape": dims,
        "mesh_shape": [1, 1],
        "layout": {"oob_val": "Undef", "memory_desc": memory},
        "shard_status": "Unsharded",
        "local_shape": dims,
    }
    return _Tensor(layout, desc)

"""A TTNN module as a binary message. Generic: what an op's table, operands and attributes are is read from its
declaration, how a value is written from the wire table."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import numpy as np
from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.mlir import ods
from tt_torch.mlir.rules import shape
from tt_torch.mlir.stablehlo.attrs import elements
from tt_torch.mlir.ttnn.dialect import wire_fields
from tt_torch.mlir.ttnn.layout import TILE, Layout, layout_of
from tt_torch.wire import binary
from tt_torch.wire.encode import encode

Message = dict[str, Any]
DEVICE = {"global_id": 0}  # the id of a DeviceRef is its first chip
# Programs start by binding the device that their ops name; the location is that of no line.
GET_DEVICE = {
    "type": {"GetDeviceOp": {"mesh": {"y": 1, "x": 1}, "offset": {"y": 0, "x": 0}, "chip_ids": [0], "out": DEVICE}},
    "debug_info": "",
    "loc_info": "loc(unknown)",
}
MEMORY_CONFIGS = ("memory_config", "memcfg", "output_memory_config")
# What every op that has the field asks for unless it says otherwise, as tt-mlir's compiler does: all bits of float32
# in products and sums, and a convolution's tables of addresses in DRAM, where they take no L1 from its data.
SETTINGS: Message = {
    "compute_config": {"math_fidelity": "HiFi4", "fp32_dest_acc_en": True},
    "conv2d_config": {"enable_kernel_stride_folding": False, "config_tensors_in_dram": True},
}


def translate(module: ir.Module, config: CompilerConfig) -> bytes:
    """The binary of a module whose first function is the entry and whose others are const-eval functions."""
    return encode(_Translator(module, config).message(), config.schema)


class _Translator:
    """One module's translation: tensor ids are unique in the binary, programs are known by name."""

    def __init__(self, module: ir.Module, config: CompilerConfig) -> None:
        self.module, self.config = module, config
        self.functions = list(module.body.operations)
        self.functions.sort(key=_is_private)  # the wire format wants public programs first
        self.index = {f.name.value: i for i, f in enumerate(self.functions)}
        self.text = _text_by_function(module)
        self.refs: dict[Any, Message] = {}
        self.next_id = 1  # 0 is null

    def message(self) -> Message:
        source = self.module.operation.get_asm(enable_debug_info=True)
        return binary.header(self.config.schema) | {
            "system_desc": binary.system(self.config.arch, self.config.system_desc),
            "mlir": {"name": "ttnn", "source": source},
            "programs": [self._program(f) for f in self.functions],
        }

    def _program(self, function: Any) -> Message:
        *body, terminator = (op.operation for op in function.regions[0].blocks[0].operations)
        inputs = [self._ref(a) for a in function.arguments]
        return {
            "name": function.name.value,
            "inputs": inputs,
            "operations": [GET_DEVICE, *map(self._operation, body, self.text[function.name.value][1:])],
            "outputs": [self._ref(v) for v in terminator.operands],
            "debug_info": {"golden_info": {"golden_map": []}},
            "private": _is_private(function),
            "mesh_shape": {"y": 1, "x": 1},
        }

    def _ref(self, value: Any) -> Message:
        if value not in self.refs:
            self.refs[value] = {"global_id": self.next_id, "desc": _desc(value)}
            self.next_id += 1
        return self.refs[value]

    def _operation(self, op: ir.Operation, text: str) -> Message:
        record = self._load_cached(op) if op.name == "func.call" else self._record(op)
        return {"type": record, "debug_info": text, "loc_info": str(op.location)}

    def _record(self, op: ir.Operation) -> Message:
        declared = ods.OPS[op.name]
        table = declared.facts["table"]
        record: Message = dict(declared.facts["fixed"])
        for name, value in ods.operands_of(op).items():
            record[name] = [self._ref(v) for v in value] if isinstance(value, list) else value and self._ref(value)
        refs = list(map(self._ref, op.results))
        listed = declared.facts.get("vector")
        record |= _attributes(op) | ({listed: refs} if listed else dict(zip(declared.results, refs, strict=True)))
        for field in wire_fields(table):
            derived = field in MEMORY_CONFIGS or field in declared.facts.get("derived", ())
            if derived and field not in record:
                record[field] = _derive(field, op)
            elif field in SETTINGS:
                record[field] = SETTINGS[field] | record.get(field, {})
        return {table: record}

    def _load_cached(self, op: ir.Operation) -> Message:
        name = op.attributes["callee"].value
        index = self.index[name]
        record = {
            "inputs": [self._ref(v) for v in op.operands],
            "outputs": [self._ref(r) for r in op.results],
            "callee_name": name,
            "program_idx": index,
            "program_hash": self._hash(self.functions[index]),
        }
        return {"LoadCachedOp": record}

    def _hash(self, function: Any) -> str:
        """Equal hashes must mean equal functions: the text without the symbol, and what the text leaves out."""
        name = function.name.value
        digest = hashlib.sha256("\n".join(self.text[name]).replace(f"@{name}(", "@(", 1).encode())
        for op in function.regions[0].blocks[0].operations:
            if op.operation.name == "ttnn.constant":
                digest.update(elements(op.operation.attributes["input"]).tobytes())
        return digest.hexdigest()


def _is_private(function: Any) -> bool:
    return "sym_visibility" in function.attributes


def _text_by_function(module: ir.Module) -> dict[str, list[str]]:
    """Each function's text: its first line, then a line per op. The module is printed once, for to print a part
    costs as much; constants are abbreviated."""
    lines = iter(module.operation.get_asm(large_elements_limit=16).splitlines()[1:])
    return {
        f.name.value: [line.strip() for line in itertools.takewhile(lambda t: t != "  }", lines)]
        for f in module.body.operations
    }


def _attributes(op: ir.Operation) -> Message:
    values = {k: v for k, v in ods.attrs_of(op).items() if v is not None}
    if op.name == "ttnn.constant":
        values["input"] = _constant_bytes(op.attributes["input"], layout_of(op.results[0]))
    return values


def _constant_bytes(value: Any, layout: Layout) -> np.ndarray:
    data = elements(value)
    if layout.dtype == "BFloat16":  # the upper half of a float32, exact for what was bf16 before
        data = (np.ascontiguousarray(data, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)


def _memory_config(layout: Layout) -> Message | None:
    if not layout.on_device:
        return None
    return {"tensor_memory_layout": layout.memory_layout, "buffer_type": layout.buffer}


def _desc(value: Any) -> Message:
    layout, dims = layout_of(value), shape(value)
    side = TILE if layout.tiled else 1
    memory = {
        "storage_type": "Device" if layout.on_device else "Host",
        "tile_shape": {"y": side, "x": side},
        "data_type": layout.dtype,
        "memory_config": _memory_config(layout),
    }
    return {
        "shape": dims,
        "mesh_shape": [1, 1],
        "layout": {"oob_val": "Undef", "memory_desc": memory},
        "shard_status": "Unsharded",
        "local_shape": dims,
    }


def _derive(field: str, op: ir.Operation) -> Any:
    """A field of placement or type, from the layout of the op's result."""
    result = op.results[0]
    layout = layout_of(result)
    if op.name == "ttnn.to_layout" and field == "dtype" and layout_of(op.operands[0]).dtype == layout.dtype:
        return None  # it converts nothing
    if field in MEMORY_CONFIGS:
        return _memory_config(layout)
    if field == "device":
        return DEVICE if layout.on_device else None
    return {"layout": layout.page_layout, "shape": shape(result)}.get(field, layout.dtype)

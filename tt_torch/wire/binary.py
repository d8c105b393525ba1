"""What compiler and tools ask of messages: headers, device descriptors, and what a program costs."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tt_torch.errors import ConfigError
from tt_torch.wire.decode import decode
from tt_torch.wire.schema import DEFAULT, load

_TILE = 32
_BYTES = {
    "Float32": 4, "Float16": 2, "BFloat16": 2, "UInt32": 4, "Int32": 4, "UInt16": 2, "UInt8": 1,
    "Float64": 8, "Int64": 8, "UInt64": 8, "Int16": 2, "Int8": 1, "Bool": 1,
}  # fmt: skip
# A tile of block floats: one mantissa per element and a byte of exponent for each 16 of them.
_TILE_BYTES = {"BFP_BFloat8": 1024 + 64, "BFP_BFloat4": 512 + 64, "BFP_BFloat2": 256 + 64,
               "BFP_Float8": 1024 + 64, "BFP_Float4": 512 + 64, "BFP_Float2": 256 + 64}  # fmt: skip

# Bookkeeping: what a call does besides running device ops on tensors.
NOT_DEVICE_OPS = frozenset({"DeallocateOp", "GetDeviceOp", "LoadCachedOp"})
# Ops that only place, reorder, copy or convert elements.
DATA_MOVEMENT = frozenset({
    "AssignOp", "BitcastConvertOp", "ConcatOp", "CopyOp", "FromDeviceOp", "PadOp", "PermuteOp",
    "RepeatInterleaveOp", "RepeatOp", "ReshapeOp", "SliceOp", "ToDeviceOp", "ToLayoutOp",
    "ToMemoryConfigOp", "TransposeOp", "TypecastOp",
})  # fmt: skip


def header(schema: str = DEFAULT) -> dict:
    """The root fields that say which compiler version and schema a binary is of."""
    table = load(schema)
    version = dict(zip(("major", "minor", "patch"), table.version, strict=True))
    return {"version": version, "schema_hash": table.hash, "ttmlir_git_hash": table.git_hash}


@cache
def system_desc(arch: str, num_chips: int = 1) -> dict:
    """SystemDesc message of a machine with `num_chips` equal chips, in a ring if more than one.

    These are the descriptors that tt-mlir's compiler assumes when it is given none (n150 and n300:
    wormhole_b0 with one and two chips; p150: blackhole). Read-only, as all messages.
    """
    chips = json.loads(Path(__file__).with_name("system_descs.json").read_text())
    if arch not in chips:
        raise ConfigError("arch", arch, " or ".join(chips))
    if num_chips < 1:
        raise ConfigError("num_chips", num_chips, "a number from 1 on")
    origin = {"y": 0, "x": 0}
    links = [(i, (i + 1) % num_chips) for i in range(num_chips)] if num_chips > 1 else []
    return {
        "cpu_descs": [{"role": "Host", "target_triple": "x86_64-pc-linux-gnu"}],
        "chip_descs": [chips[arch]] * num_chips,
        "chip_desc_indices": list(range(num_chips)),
        "chip_capabilities": ["HostMMIO"] * num_chips,
        "chip_coords": [{"rack": 0, "shelf": 0, "y": 0, "x": 0}],
        "chip_channels": [
            {"device_id0": a, "ethernet_core_coord0": origin, "device_id1": b, "ethernet_core_coord1": origin}
            for a, b in links
        ],
    }


def system(arch: str, file: str = "") -> dict:
    """SystemDesc message of the system to compile for: that of a `.ttsys` file, else one chip of `arch`.

    A file whose first chip is of another architecture is a ConfigError, one that is none a BinaryFormatError.
    """
    if not file:
        return system_desc(arch)
    try:
        root = decode(Path(file).read_bytes())
    except OSError as error:
        raise ConfigError("system_desc", file, f"a .ttsys file: {error.strerror}") from None
    if "programs" in root:
        raise ConfigError("system_desc", file, "a .ttsys file; this is a .ttnn binary")
    found = root["system_desc"]["chip_descs"][0]["arch"].lower()
    if found != arch:
        raise ConfigError("system_desc", file, f"a system of arch={arch!r}; this one has {found} chips")
    return root["system_desc"]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call of a binary's public programs does on the device."""

    device_ops: int
    data_movement: int
    bytes_moved: int


def device_ops(message: dict) -> Iterator[tuple[str, dict]]:
    """(name, table) of each op that a call runs on the device.

    Private programs (const-eval, whose results are cached) are not part of a call, and
    deallocate, get_device and load_cached are bookkeeping: none of them is a device op.
    """
    for program in message.get("programs", ()):
        if program.get("private"):
            continue
        for operation in program.get("operations", ()):
            for name, op in operation.get("type", {}).items():
                if name not in NOT_DEVICE_OPS:
                    yield name, op


def op_histogram(message: dict) -> Counter[str]:
    """How often each op runs on the device per call; families as "EltwiseBinaryOp.Add"."""
    return Counter(_full_name(name, op) for name, op in device_ops(message))


def _full_name(name: str, op: dict) -> str:
    kind = op.get("type")
    return f"{name}.{kind}" if isinstance(kind, str) else name


def cost(message: dict) -> Cost:
    """Device ops and bytes moved per call.

    An op moves each of its operands and results once, an operand given twice twice, at its physical
    size: the last two dimensions of tiled tensors padded to 32.
    """
    ops = moves = total = 0
    for name, op in device_ops(message):
        ops += 1
        moves += name in DATA_MOVEMENT
        total += sum(physical_bytes(ref) for ref in tensor_refs(op))
    return Cost(ops, moves, total)


def tensor_refs(part: object) -> Iterator[dict]:
    """Each TensorRef that a part of a message refers to, in the order of its fields."""
    if isinstance(part, dict):
        if "global_id" in part and "desc" in part:
            yield part
        else:
            for value in part.values():
                yield from tensor_refs(value)
    elif isinstance(part, list | tuple):
        for value in part:
            yield from tensor_refs(value)


def physical_bytes(ref: dict) -> int:
    """Size in memory of the tensor that a TensorRef describes."""
    desc = ref["desc"]
    memory = desc["layout"]["memory_desc"]
    dtype, shape = memory["data_type"], list(desc["shape"])
    if memory["tile_shape"] != {"y": _TILE, "x": _TILE}:
        return math.prod(shape) * _BYTES[dtype]
    shape = [1] * (2 - len(shape)) + shape
    tiles = math.prod(shape[:-2]) * math.ceil(shape[-2] / _TILE) * math.ceil(shape[-1] / _TILE)
    return tiles * (_TILE_BYTES[dtype] if dtype in _TILE_BYTES else _TILE * _TILE * _BYTES[dtype])


def place(ref: dict) -> str:
    """Where the tensor of a TensorRef lies: the buffer type of device memory ("DRAM", "L1"), or "host"."""
    memory = ref["desc"]["layout"]["memory_desc"]
    return memory["memory_config"]["buffer_type"] if memory["storage_type"] == "Device" else "host"


def operands_and_results(program: dict) -> Iterator[tuple[str, list[dict], list[dict]]]:
    """(name, operands, results) of each op; a result is a tensor that nothing before it has named."""
    known = {ref["global_id"] for ref in program.get("inputs") or ()}
    for operation in program.get("operations") or ():
        for name, op in operation.get("type", {}).items():
            refs = list(tensor_refs(op))
            results = [ref for ref in refs if ref["global_id"] not in known]
            yield name, [ref for ref in refs if ref["global_id"] in known], results
            known.update(ref["global_id"] for ref in results)


def peak_bytes(program: dict) -> dict[str, int]:
    """The most that a program's tensors take at once, by place on the device, inputs included.

    Counted from the file: what an op needs besides its operands and results is not in it.
    """
    live = {ref["global_id"]: ref for ref in program.get("inputs") or ()}
    now: Counter[str] = Counter()
    for ref in live.values():
        now[place(ref)] += physical_bytes(ref)
    peak = Counter(now)
    for name, operands, results in operands_and_results(program):
        for ref in operands if name == "DeallocateOp" else ():
            if live.pop(ref["global_id"], None):
                now[place(ref)] -= physical_bytes(ref)
        for ref in results:
            live[ref["global_id"]] = ref
            now[place(ref)] += physical_bytes(ref)
        peak |= now
    return {where: size for where, size in peak.items() if where != "host"}

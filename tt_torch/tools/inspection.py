"""The output of `tt-torch inspect` for a `.ttnn` or `.ttsys` file."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tt_torch.errors import BinaryFormatError, ConfigError
from tt_torch.wire import calls, facts
from tt_torch.wire.as_json import Json, as_json
from tt_torch.wire.binary import chips
from tt_torch.wire.decode import decode
from tt_torch.wire.messages import ChipDesc, File, Program, SystemDesc, Version
from tt_torch.wire.schema import load
from tt_torch.wire.spending import bytes_by_part


def text(name: str, data: bytes) -> Iterator[str]:
    """The lines of the text form."""
    message = decode(data)
    yield f"{name}: {len(data):,} bytes, schema {message['schema_hash'][:8]}, {_origin(message)}"
    yield from system_lines(message["system_desc"])
    if "programs" in message:
        yield from _programs(message)
    yield "\nbytes of the file:"
    for part, size in bytes_by_part(data).most_common():
        yield f"  {size:11,} {size / len(data):6.1%} {part}"


def _programs(message: File) -> Iterator[str]:
    for i, program in enumerate(message["programs"]):
        yield from _program(i, program, calls.expanded(message, program))
    spent = calls.cost(message)
    yield f"\n{spent.device_ops} device ops per call, {spent.bytes_moved:,} bytes moved"
    for op, count in calls.op_histogram(message).most_common():
        yield f"  {count:5} {op}"


def _version(part: Version) -> str:
    return f"{part['major']}.{part['minor']}.{part['patch']}"


def _origin(message: File) -> str:
    """The version of tt-mlir that wrote the file; and the version of our table of the format, if it differs."""
    table = load(message["schema_hash"])
    ours = (".".join(map(str, table.version)), table.git_hash)
    theirs = (_version(message["version"]), message.get("ttmlir_git_hash", ""))
    written = f"tt-mlir {theirs[0]} ({theirs[1][:8] or 'no commit'})"
    if theirs == ours:
        return written
    return f"{written}; our table of this schema is of tt-mlir {ours[0]} ({ours[1][:8]})"


def system_lines(desc: SystemDesc) -> Iterator[str]:
    """The lines about the chips of a system."""
    for (arch, grid, l1, channels, dram), count in Counter(map(_chip, chips(desc))).items():
        yield (
            f"system: {count} x {arch}, {grid} cores with {l1:,} bytes of L1 each, "
            f"{channels} DRAM channels of {dram:,} bytes"
        )
    if desc.get("chip_channels"):
        links = ", ".join(f"{link['device_id0']}-{link['device_id1']}" for link in desc["chip_channels"])
        yield f"links between chips: {links}"


def _chip(desc: ChipDesc) -> tuple[str, str, int, int, int]:
    grid = f"{desc['grid_size']['y']}x{desc['grid_size']['x']}"
    return desc["arch"], grid, desc["l1_size"], desc["num_dram_channels"], desc["dram_channel_size"]


def _program(index: int, program: Program, expanded: Program) -> Iterator[str]:
    """The lines of a program. Its peak of memory comes from `expanded`, which also has the ops of called programs."""
    private = ", private" if program.get("private") else ""
    yield f"\nprogram {program['name']} (number {index}, {len(program['operations'])} operations{private})"
    rows, columns = facts.mesh_shape(program)
    if rows * columns > 1:
        yield f"  mesh: {rows}x{columns} chips, which run the program together; sizes are those of one chip"
    ways = {"input": facts.inputs(program), "output": facts.outputs(program)}
    for way, tensors in ways.items():
        for i, tensor in enumerate(tensors):
            yield f"  {way} {i}: {_tensor(tensor)}"
    held: dict[str, Mapping[str, int]] = {f"{way}s": facts.bytes_by_place(tensors) for way, tensors in ways.items()}
    held["peak on the device"] = facts.peak_bytes(expanded)
    yield "  memory: " + "; ".join(f"{what} {_places(places)}" for what, places in held.items())


def _places(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{size:,} bytes of {where}" for where, size in sizes.items() if size) or "none"


def _tensor(tensor: facts.Tensor) -> str:
    rows, columns = tensor.tile
    layout = "row major" if tensor.tile == (1, 1) else f"{rows}x{columns} tiles"
    shape = "x".join(map(str, tensor.shape)) or "scalar"
    return f"{tensor.dtype} {shape}, {layout} in {tensor.place}"


def section(name: str, message: File, brief: bool = False) -> object:
    """A part of a file in the form of `ttrt read --section NAME`. `brief` shortens bytes to length and hash.

    Raises ConfigError for an unknown name, and BinaryFormatError if the file lacks what the part consists of.
    """
    if name not in SECTIONS:
        raise ConfigError("section", name, " or ".join(SECTIONS))
    if "programs" not in message and name not in ("all", "version", "system_desc"):
        raise ConfigError("section", name, "all, version or system_desc for a system descriptor")
    if name == "op_stats":
        return _op_stats(message)
    file = as_json(message, _digest if brief else list)
    try:
        return _OF_JSON[name](file)
    except KeyError as missing:
        raise BinaryFormatError(f"the file has no {missing.args[0]} for its section {name!r}") from None


def _digest(data: bytes) -> Json:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _by_program(field: str) -> Callable[[dict[str, Any]], list[dict[str, Any]]]:
    return lambda file: [{program["name"]: program.get(field)} for program in file["programs"]]


def _mesh_shapes(file: dict[str, Any]) -> list[dict[str, Any]]:
    shapes = ((p["name"], p.get("mesh_shape")) for p in file["programs"])
    return [{name: [shape["y"], shape["x"]] if shape else None} for name, shape in shapes]


def _op_stats(file: File) -> list[dict[str, Any]]:
    """The ops of all programs; ttrt has the fields that are empty here, and leaves them empty, too."""
    return [
        {
            "op_name": "ttnn." + re.sub(r"(?<!^)(?=[A-Z])", "_", op.name.removesuffix("Op")).lower(),
            "framework_op_name": "",
            "dialect_op_name": "",
            "ttir_op_name": "",
            "inputs": list(map(_stats, op.operands)),
            "outputs": list(map(_stats, op.results)),
            "attributes": {},
        }
        for program in file["programs"]
        for op in facts.ops(program)
    ]


def _stats(tensor: facts.Tensor) -> dict[str, object]:
    return {"shape": list(tensor.shape), **tensor.memory}


_OF_JSON: dict[str, Callable[[dict[str, Any]], object]] = {
    "all": lambda file: file,
    "version": lambda file: {
        "version": _version(file["version"]),
        "schema_hash": file["schema_hash"],
        "tt-mlir git hash": file.get("ttmlir_git_hash"),
    },
    "system_desc": lambda file: file["system_desc"],
    "mlir": lambda file: file.get("mlir"),
    "inputs": _by_program("inputs"),
    "outputs": _by_program("outputs"),
    "mesh_shape": _mesh_shapes,
}
SECTIONS = (*_OF_JSON, "op_stats")

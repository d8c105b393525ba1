"""What `tt-torch inspect` shows of a `.ttnn` or `.ttsys` file."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from tt_torch.errors import ConfigError
from tt_torch.wire.as_json import as_json
from tt_torch.wire.binary import cost, op_histogram, operands_and_results, peak_bytes, physical_bytes, place
from tt_torch.wire.schema import load


def text(name: str, size: int, message: dict) -> Iterator[str]:
    """The lines for people."""
    yield f"{name}: {size:,} bytes, schema {message['schema_hash'][:8]}, {_origin(message)}"
    yield from _system(message["system_desc"])
    if "programs" not in message:
        return
    for i, program in enumerate(message["programs"]):
        yield from _program(i, program)
    spent = cost(message)
    yield f"\n{spent.device_ops} device ops per call, {spent.bytes_moved:,} bytes moved"
    for op, count in op_histogram(message).most_common():
        yield f"  {count:5} {op}"


def _version(part: dict) -> str:
    return ".".join(str(part[name]) for name in ("major", "minor", "patch"))


def _origin(message: dict) -> str:
    """Which tt-mlir wrote the file, and whether it is another than the one that our table of the format is of."""
    table = load(message["schema_hash"])
    ours = (".".join(map(str, table.version)), table.git_hash)
    theirs = (_version(message["version"]), message.get("ttmlir_git_hash", ""))
    written = f"tt-mlir {theirs[0]} ({theirs[1][:8] or 'no commit'})"
    if theirs == ours:
        return written
    return f"{written}; our table of this schema is of tt-mlir {ours[0]} ({ours[1][:8]})"


def _system(desc: dict) -> Iterator[str]:
    chips = [desc["chip_descs"][i] for i in desc["chip_desc_indices"]]
    for (arch, grid, l1, channels, dram), count in Counter(map(_chip, chips)).items():
        yield (
            f"system: {count} x {arch}, {grid} cores with {l1:,} bytes of L1 each, "
            f"{channels} DRAM channels of {dram:,} bytes"
        )
    if desc.get("chip_channels"):
        links = ", ".join(f"{link['device_id0']}-{link['device_id1']}" for link in desc["chip_channels"])
        yield f"links between chips: {links}"


def _chip(desc: dict) -> tuple[str, str, int, int, int]:
    grid = f"{desc['grid_size']['y']}x{desc['grid_size']['x']}"
    return desc["arch"], grid, desc["l1_size"], desc["num_dram_channels"], desc["dram_channel_size"]


def _program(index: int, program: dict) -> Iterator[str]:
    private = ", private" if program.get("private") else ""
    yield f"\nprogram {program['name']} (number {index}, {len(program['operations'])} operations{private})"
    for way in ("inputs", "outputs"):
        for i, ref in enumerate(program.get(way) or ()):
            yield f"  {way[:-1]} {i}: {_tensor(ref)}"
    held = {way: Counter[str]() for way in ("inputs", "outputs")}
    for way, places in held.items():
        for ref in program.get(way) or ():
            places[place(ref)] += physical_bytes(ref)
    yield "  memory: " + "; ".join(
        f"{what} {_places(places)}" for what, places in (*held.items(), ("peak on the device", peak_bytes(program)))
    )


def _places(sizes: dict[str, int]) -> str:
    return ", ".join(f"{size:,} bytes of {where}" for where, size in sizes.items() if size) or "none"


def _tensor(ref: dict) -> str:
    memory = ref["desc"]["layout"]["memory_desc"]
    tile = memory["tile_shape"]
    layout = "row major" if (tile["y"], tile["x"]) == (1, 1) else f"{tile['y']}x{tile['x']} tiles"
    shape = "x".join(map(str, ref["desc"]["shape"])) or "scalar"
    return f"{memory['data_type']} {shape}, {layout} in {place(ref)}"


def section(name: str, message: dict, brief: bool = False) -> Any:
    """A part of a file as `ttrt read --section NAME` of tt-mlir gives it; `brief` gives bytes by length and hash."""
    if name not in SECTIONS:
        raise ConfigError("section", name, " or ".join(SECTIONS))
    if "programs" not in message and name not in ("all", "version", "system_desc"):
        raise ConfigError("section", name, "all, version or system_desc for a system descriptor")
    return SECTIONS[name](message if name == "op_stats" else as_json(message, _digest if brief else list))


def _digest(data: bytes) -> dict[str, Any]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _by_program(field: str) -> Callable[[dict], list[dict[str, Any]]]:
    return lambda file: [{program["name"]: program.get(field)} for program in file["programs"]]


def _mesh_shapes(file: dict) -> list[dict[str, Any]]:
    shapes = ((p["name"], p.get("mesh_shape")) for p in file["programs"])
    return [{name: [shape["y"], shape["x"]] if shape else None} for name, shape in shapes]


def _op_stats(file: dict) -> list[dict[str, Any]]:
    """The ops of all programs; ttrt has the fields that are empty here, and leaves them empty, too."""
    return [
        {
            "op_name": "ttnn." + re.sub(r"(?<!^)(?=[A-Z])", "_", name.removesuffix("Op")).lower(),
            "framework_op_name": "",
            "dialect_op_name": "",
            "ttir_op_name": "",
            "inputs": [_stats(ref) for ref in operands],
            "outputs": [_stats(ref) for ref in results],
            "attributes": {},
        }
        for program in file["programs"]
        for name, operands, results in operands_and_results(program)
    ]


def _stats(ref: dict) -> dict[str, Any]:
    return {"shape": ref["desc"]["shape"]} | ref["desc"]["layout"]["memory_desc"]


SECTIONS: dict[str, Callable[[dict], Any]] = {
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
    "op_stats": _op_stats,
}

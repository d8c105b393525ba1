"""Makes the parts with which every message starts: the header, and the descriptor of the machine."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from tt_torch.errors import BinaryFormatError, ConfigError
from tt_torch.wire.decode import decode
from tt_torch.wire.messages import ChipDesc, Dim2d, Record, SystemDesc
from tt_torch.wire.schema import DEFAULT, load


def header(schema: str = DEFAULT) -> Record:
    """The root fields that name the compiler version and the schema of a binary."""
    table = load(schema)
    version = dict(zip(("major", "minor", "patch"), table.version, strict=True))
    return {"version": version, "schema_hash": table.hash, "ttmlir_git_hash": table.git_hash}


@cache
def system_desc(arch: str, num_chips: int = 1) -> SystemDesc:
    """SystemDesc message of a machine with `num_chips` equal chips, which form a ring if there are several.

    These are the default descriptors of tt-mlir's compiler (n150 and n300: wormhole_b0 with one and two chips; p150:
    blackhole). Do not change the result: it is cached. Raises ConfigError for an unknown `arch` and for less than one
    chip.
    """
    chips = json.loads(Path(__file__).with_name("system_descs.json").read_text())
    if arch not in chips:
        raise ConfigError("arch", arch, " or ".join(chips))
    if num_chips < 1:
        raise ConfigError("num_chips", num_chips, "a number of at least 1")
    origin: Dim2d = {"y": 0, "x": 0}
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


def chips(system: SystemDesc) -> list[ChipDesc]:
    """The description of each chip of a system. Raises BinaryFormatError if the system does not have it."""
    found, indices = system["chip_descs"], system["chip_desc_indices"]
    if any(index >= len(found) for index in indices):
        raise BinaryFormatError(f"the system describes {len(found)} chips, and has one of number {max(indices)}")
    return [found[index] for index in indices]


def first_chip(system: SystemDesc) -> ChipDesc:
    """The description of the chips that programs are compiled for. All chips of a mesh are equal. Raises
    BinaryFormatError for a system without chips."""
    if not system["chip_descs"]:
        raise BinaryFormatError("the system has no description of a chip")
    return system["chip_descs"][0]


def system(arch: str, file: str = "") -> SystemDesc:
    """The SystemDesc message of the system to compile for: from a `.ttsys` file, or one chip of `arch` without a file.

    Raises ConfigError if the file cannot be read or its first chip has another architecture, and BinaryFormatError if
    it is no `.ttsys` file.
    """
    if not file:
        return system_desc(arch)
    try:
        root = decode(Path(file).read_bytes())
    except OSError as error:
        raise ConfigError("system_desc", file, f"a .ttsys file: {error.strerror}") from None
    if "programs" in root:
        raise ConfigError("system_desc", file, "a .ttsys file; this is a .ttnn binary")
    found = first_chip(root["system_desc"])["arch"].lower()
    if found != arch:
        raise ConfigError("system_desc", file, f"a system of arch={arch!r}; this one has {found} chips")
    return root["system_desc"]

"""What every message starts with: the header, and the descriptor of the machine."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from tt_torch.errors import ConfigError
from tt_torch.wire.decode import decode
from tt_torch.wire.messages import ChipDesc, Dim2d, Record, SystemDesc
from tt_torch.wire.schema import DEFAULT, load


def header(schema: str = DEFAULT) -> Record:
    """The root fields that say which compiler version and schema a binary is of."""
    table = load(schema)
    version = dict(zip(("major", "minor", "patch"), table.version, strict=True))
    return {"version": version, "schema_hash": table.hash, "ttmlir_git_hash": table.git_hash}


@cache
def system_desc(arch: str, num_chips: int = 1) -> SystemDesc:
    """SystemDesc message of a machine with `num_chips` equal chips, in a ring if more than one.

    These are the descriptors that tt-mlir's compiler assumes when it is given none (n150 and n300:
    wormhole_b0 with one and two chips; p150: blackhole). Read-only, as all messages.
    """
    chips = json.loads(Path(__file__).with_name("system_descs.json").read_text())
    if arch not in chips:
        raise ConfigError("arch", arch, " or ".join(chips))
    if num_chips < 1:
        raise ConfigError("num_chips", num_chips, "a number from 1 on")
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


def first_chip(system: SystemDesc) -> ChipDesc:
    """The description of the chips that programs are compiled for: a mesh has equal ones."""
    return system["chip_descs"][0]


def system(arch: str, file: str = "") -> SystemDesc:
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
    found = first_chip(root["system_desc"])["arch"].lower()
    if found != arch:
        raise ConfigError("system_desc", file, f"a system of arch={arch!r}; this one has {found} chips")
    return root["system_desc"]

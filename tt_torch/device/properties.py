"""The properties of a device."""

from __future__ import annotations

import dataclasses

from tt_torch.device.chips import DeviceLike, index_of


@dataclasses.dataclass(frozen=True)
class DeviceProperties:
    """The name of a device, its architecture ("wormhole_b0" or "blackhole"), its bytes of DRAM (`total_memory`), its
    bytes of L1 over all cores (`l1_memory`), and whether it is emulated."""

    name: str
    arch: str
    total_memory: int
    l1_memory: int
    emulated: bool = True


def get_device_properties(device: DeviceLike = None) -> DeviceProperties:
    """Name, architecture and memory of a chip; None means the current one."""
    from tt_torch.config import CompilerConfig
    from tt_torch.runtime import Device

    arch = CompilerConfig.from_env().arch
    chip = Device.shared(arch, index_of(device))
    memory = chip.memory_stats()
    name = f"Tenstorrent {arch} (emulated)"
    return DeviceProperties(name, arch, memory["dram"]["total"], memory["l1"]["total"])


def get_device_name(device: DeviceLike = None) -> str:
    """The name of a chip; None means the current one."""
    return get_device_properties(device).name

"""Opening meshes of chips and handing out parts of them, with one registry per process.

The texts of failed assertions are part of the interface: programs that were written for tt-torch match on them.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import KeysView, Sequence
from typing import Any, TypeAlias

from tt_torch.config import CompilerConfig
from tt_torch.errors import ConfigError, DeviceError

Device: TypeAlias = Any  # a mesh or a part of one, as `driver.devices.open_device` opens it
Place: TypeAlias = tuple[int, ...]  # the row and the column of a chip in its mesh


@dataclasses.dataclass
class _Mesh:
    shape: Sequence[int]
    subs: dict[Device, set[Place]] = dataclasses.field(default_factory=dict)  # sub-device: where its chips are

    def has_room(self, shape: Sequence[int]) -> bool:
        return sum(map(len, self.subs.values())) + math.prod(shape) <= math.prod(self.shape)


def _places(shape: Sequence[int], offset: Sequence[int]) -> set[Place]:
    ranges = (range(start, start + size) for start, size in zip(offset, shape, strict=True))
    return set(itertools.product(*ranges))


def _check_ids(device_ids: Sequence[int], chips: int) -> None:
    """Raises DeviceError unless each id is the number of a chip, and no chip is named twice."""
    known = range(chips)
    if len(set(device_ids)) < len(device_ids) or not all(number in known for number in device_ids):
        raise DeviceError(
            f"device_ids={list(device_ids)}: each must be another one of the {chips} chips, from 0 to {chips - 1}"
        )


def _open(mesh_shape: Sequence[int], **options: Any) -> Device:
    from tt_torch.driver.devices import open_device

    given = {name: value for name, value in options.items() if value is not None}
    return open_device(CompilerConfig.from_env(), list(mesh_shape), **given)


def _chips() -> int:
    from tt_torch.driver.devices import available_chips

    return available_chips(CompilerConfig.from_env())


class DeviceManager:
    """Parent meshes that this process has open, and the sub-meshes cut from each.

    TT_TORCH_DEVICE chooses the kind of device. What the kind cannot do is an error: emulated chips always keep
    programs and have one command queue, and `dispatch_core_type` must be None everywhere, because the library chooses
    the cores.
    """

    _meshes: dict[Device, _Mesh] = {}  # noqa: RUF012 - one per process is the point

    @classmethod
    def get_num_available_devices(cls) -> int:
        return _chips()

    @classmethod
    def create_parent_mesh_device(
        cls,
        mesh_shape: Sequence[int],
        device_ids: Sequence[int] | None = None,
        num_hw_cqs: int | None = None,
        enable_program_cache: bool | None = None,
        l1_small_size: int | None = None,
        dispatch_core_type: object = None,
    ) -> Device:
        """Opens a mesh, to run programs on or to cut into sub-meshes."""
        assert len(mesh_shape) == 2, "Mesh shape must be a list of two integers."
        assert math.prod(mesh_shape) <= cls.get_num_available_devices(), "Mesh shape exceeds available devices."
        if device_ids is not None:
            _check_ids(device_ids, cls.get_num_available_devices())
        if dispatch_core_type is not None:
            accepted = "None: the emulated chips need no cores for dispatch, and the ttnn library chooses its own"
            raise ConfigError("dispatch_core_type", dispatch_core_type, accepted)
        parent = _open(
            mesh_shape,
            device_ids=device_ids,
            num_hw_cqs=num_hw_cqs,
            enable_program_cache=enable_program_cache,
            l1_small_size=l1_small_size,
        )
        cls._meshes[parent] = _Mesh(mesh_shape)
        return parent

    @classmethod
    def get_parent_devices(cls) -> KeysView[Device]:
        return cls._meshes.keys()

    @classmethod
    def create_sub_mesh_device(
        cls, parent_mesh: Device, mesh_offset: Sequence[int], mesh_shape: Sequence[int] = (1, 1)
    ) -> Device:
        """Cuts a sub-mesh out of an open mesh. Raises DeviceError if another sub-mesh has some of its chips."""
        assert parent_mesh in cls._meshes, "Parent mesh not found."
        mesh = cls._meshes[parent_mesh]
        assert mesh.has_room(mesh_shape), "Sub mesh shape is too big."
        shape, offset = list(mesh_shape), list(mesh_offset)
        sub_device = parent_mesh.submesh(shape, offset)
        places = _places(shape, offset)
        if taken := places & set().union(*mesh.subs.values()):
            sub_device.close()
            raise DeviceError(
                f"a sub-mesh of {shape} at {offset} would share the chips at {sorted(taken)} with another sub-mesh; "
                "release that one first"
            )
        mesh.subs[sub_device] = places
        return sub_device

    @classmethod
    def get_sub_mesh_devices(cls, parent_mesh: Device) -> set[Device]:
        assert parent_mesh in cls._meshes, "Parent mesh not found."
        return set(cls._meshes[parent_mesh].subs)

    @classmethod
    def release_sub_mesh_device(
        cls, sub_device: Device, cleanup_parent: bool = False, parent: Device | None = None
    ) -> None:
        """Closes a sub-mesh; with `cleanup_parent` also its parent, if this was the last one."""
        parent = cls._parent_of(sub_device, parent)
        subs = cls._meshes[parent].subs
        del subs[sub_device]
        sub_device.close()
        if cleanup_parent and not subs:
            cls.release_parent_device(parent)

    @classmethod
    def _parent_of(cls, sub_device: Device, parent: Device | None) -> Device:
        if parent is not None:
            assert parent in cls._meshes, "Parent mesh not found in the list of managed devices."
            assert sub_device in cls._meshes[parent].subs, "Sub device not found in the specified parent mesh."
            return parent
        found = [candidate for candidate, mesh in cls._meshes.items() if sub_device in mesh.subs]
        assert found, "Sub device not found in any parent mesh."
        return found[0]

    @classmethod
    def release_parent_device(cls, parent_device: Device, cleanup_sub_devices: bool = False) -> None:
        """Closes a mesh; with `cleanup_sub_devices` also its sub-meshes."""
        assert parent_device in cls._meshes, "Parent Device not found."
        subs = cls._meshes[parent_device].subs
        assert not subs or cleanup_sub_devices, "Sub devices still exist under this parent mesh."
        for sub_device in list(subs):
            cls.release_sub_mesh_device(sub_device, parent=parent_device)
        del cls._meshes[parent_device]
        parent_device.close()

    @classmethod
    def acquire_available_devices(cls, num_devices: int | None = None, **options: Any) -> tuple[Device, list[Device]]:
        """Opens one row of chips, by default all of them. Returns the mesh, and each chip as a sub-mesh in order."""
        num_devices = cls.get_num_available_devices() if num_devices is None else num_devices
        parent = cls.create_parent_mesh_device([1, num_devices], **options)
        return parent, [cls.create_sub_mesh_device(parent, (0, i)) for i in range(num_devices)]

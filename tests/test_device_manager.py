"""DeviceManager keeps account of parent meshes and sub-meshes. The devices are stand-ins."""

from __future__ import annotations

import pytest

from tt_torch.errors import DeviceError, TTTorchError
from tt_torch.tools import device_manager
from tt_torch.tools.device_manager import DeviceManager


class Device:
    def __init__(self, shape, **options):
        self.shape, self.options, self.is_open = shape, options, True

    def submesh(self, shape, offset):
        return Device(shape, offset=offset)

    def close(self):
        self.is_open = False


@pytest.fixture(autouse=True)
def four_chips(monkeypatch):
    monkeypatch.setattr(device_manager, "_chips", lambda: 4)
    monkeypatch.setattr(device_manager, "_open", Device)
    monkeypatch.setattr(DeviceManager, "_meshes", {})


def fails(text):
    return pytest.raises(AssertionError, match=f"^{text}")


def test_parent_meshes():
    parent = DeviceManager.create_parent_mesh_device((2, 2), l1_small_size=1024)
    assert parent.options["l1_small_size"] == 1024
    assert list(DeviceManager.get_parent_devices()) == [parent]
    with fails("Mesh shape must be a list of two integers."):
        DeviceManager.create_parent_mesh_device((1, 1, 1))
    with fails("Mesh shape exceeds available devices."):
        DeviceManager.create_parent_mesh_device((2, 3))
    DeviceManager.release_parent_device(parent)
    assert not parent.is_open and not DeviceManager.get_parent_devices()


def test_sub_meshes():
    parent = DeviceManager.create_parent_mesh_device((2, 2))
    subs = {DeviceManager.create_sub_mesh_device(parent, (0, i), (2, 1)) for i in range(2)}
    assert DeviceManager.get_sub_mesh_devices(parent) == subs
    with fails("Sub mesh shape is too big."):
        DeviceManager.create_sub_mesh_device(parent, (0, 0))
    for call in (
        DeviceManager.get_sub_mesh_devices,
        lambda p: DeviceManager.create_sub_mesh_device(p, (0, 0)),
    ):
        with fails("Parent mesh not found."):
            call(Device([1, 1]))


def test_releasing_sub_meshes():
    parent, (first, second) = DeviceManager.acquire_available_devices(2)
    with fails("Parent mesh not found in the list of managed devices."):
        DeviceManager.release_sub_mesh_device(first, parent=Device([1, 1]))
    with fails("Sub device not found in the specified parent mesh."):
        DeviceManager.release_sub_mesh_device(Device([1, 1]), parent=parent)
    with fails("Sub device not found in any parent mesh."):
        DeviceManager.release_sub_mesh_device(Device([1, 1]))
    DeviceManager.release_sub_mesh_device(first, cleanup_parent=True)
    assert not first.is_open and parent.is_open
    DeviceManager.release_sub_mesh_device(second, cleanup_parent=True)
    assert not parent.is_open and not DeviceManager.get_parent_devices()


def test_releasing_parents():
    parent, subs = DeviceManager.acquire_available_devices()
    assert len(subs) == 4 and [sub.options["offset"] for sub in subs] == [[0, i] for i in range(4)]
    with fails("Parent Device not found."):
        DeviceManager.release_parent_device(subs[0])
    with fails("Sub devices still exist under this parent mesh."):
        DeviceManager.release_parent_device(parent)
    DeviceManager.release_parent_device(parent, cleanup_sub_devices=True)
    assert not any(device.is_open for device in (parent, *subs))


@pytest.fixture
def real(monkeypatch):
    monkeypatch.undo()  # the emulated chips, and not the stand-ins
    monkeypatch.setattr(DeviceManager, "_meshes", {})


@pytest.mark.usefixtures("real")
@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"device_ids": [99, 1]}, r"device_ids=\[99, 1\]: each must be another one of the 8 chips, from 0 to 7"),
        ({"device_ids": [-1, 1]}, "from 0 to 7"),
        ({"device_ids": [2, 2]}, "each must be another one"),
        ({"device_ids": ["0", "1"]}, "each must be another one"),
        ({"device_ids": [1]}, "the number of device_ids is 1"),
        ({"dispatch_core_type": "x"}, "dispatch_core_type='x' is not accepted"),
        ({"enable_program_cache": False}, "emulated chips always keep programs"),
        ({"num_hw_cqs": 2}, "emulated chips have one command queue"),
        ({"l1_small_size": 1 << 30}, "leaves no L1"),
    ],
)
def test_what_emulated_chips_cannot_use_is_an_error(given, error):
    with pytest.raises(TTTorchError, match=error):
        DeviceManager.create_parent_mesh_device((1, 2), **given)
    assert not DeviceManager.get_parent_devices()


@pytest.mark.usefixtures("real")
def test_sub_meshes_have_no_chip_in_common():
    parent = DeviceManager.create_parent_mesh_device((2, 2), device_ids=[4, 3, 2, 1])
    first = DeviceManager.create_sub_mesh_device(parent, (0, 1), (2, 1))
    assert first.device_ids == (3, 1)
    with pytest.raises(DeviceError, match=r"share the chips at \[\(1, 1\)\] with another sub-mesh"):
        DeviceManager.create_sub_mesh_device(parent, (1, 0), (1, 2))
    with pytest.raises(DeviceError, match="not inside"):
        DeviceManager.create_sub_mesh_device(parent, (2, 0))
    assert DeviceManager.get_sub_mesh_devices(parent) == {first}
    DeviceManager.release_sub_mesh_device(first)
    again = DeviceManager.create_sub_mesh_device(parent, (1, 0), (1, 2))
    assert again.device_ids == (2, 1)
    DeviceManager.release_parent_device(parent, cleanup_sub_devices=True)

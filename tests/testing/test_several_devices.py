"""ModelTester on several devices at once."""

from __future__ import annotations

import pytest
import torch

from tests.testing.testers import MlpTester, Noting
from tt_torch.config import CompilerConfig
from tt_torch.driver.devices import available_chips, default_device, open_device
from tt_torch.testing.parallel import on_each_device


def test_a_device_is_given_alone_or_in_a_list():
    device = default_device(CompilerConfig())
    for devices in (device, [device]):
        tester = MlpTester("mlp", "eval", devices=devices)
        tester.test_model()
        tester.finalize()
        assert tester.devices == [device]


def test_a_model_on_several_devices_at_once():
    note = Noting()
    tester = MlpTester("mlp", "eval", data_parallel_mode=True, record_property_handle=note)
    results = tester.test_model()
    tester.finalize()
    assert len(results) == len(tester.pccs) == available_chips(CompilerConfig()) > 1
    for result in results:
        torch.testing.assert_close(result, results[0])
    assert note.all("tags")[0]["parallelism"] == "runtime_data_parallel"
    shown: list[object] = []
    tester.print_outputs(results, True, shown.append)
    assert len(shown) == len(results)


def test_chips_are_closed_after_an_error():
    used = []

    def fails_on_the_third(device):
        used.append(device)
        if len(used) == 3:
            raise KeyError("third")
        return torch.ones(1)

    with pytest.raises(KeyError, match="third"):
        on_each_device(fails_on_the_third, CompilerConfig())
    assert len({device.device_ids for device in used}) == 3 and not any(device.is_open for device in used)


def test_a_wrong_result_of_one_device_is_found(monkeypatch: pytest.MonkeyPatch):
    mesh = open_device(CompilerConfig(), [1, 2])
    devices = [mesh.submesh([1, 1], [0, i]) for i in range(2)]
    tester = MlpTester("mlp", "eval", data_parallel_mode=True, devices=devices)
    compiled = tester._compiled

    def wrong_on_the_second(model, config, device, asynchronous):
        run = compiled(model, config, device, asynchronous)
        return (lambda x: run(-x)) if device is devices[1] else run

    monkeypatch.setattr(tester, "_compiled", wrong_on_the_second)
    try:
        tester.test_model()
    finally:
        for device in (*devices, mesh):
            device.close()
    assert tester.pccs[0] > 0.99 > tester.pccs[1]
    with pytest.raises(AssertionError, match="PCC"):
        tester.finalize()

"""The device's name, methods and module, by which PyTorch users find it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from forked import Server
from torch import nn


def run(code: str, **variables: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, **variables}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("first", ["torch", "tt_torch.device.tt, torch"])
def test_torch_loads_the_device_by_itself(first: str):
    done = run(f"import {first}; print(torch.ones(2, device='tt').sum().item(), torch.tt.is_available())")
    assert done.stdout.split() == ["2.0", "True"], done.stderr


def test_autoload_can_be_turned_off_and_done_by_hand():
    code = "import torch; print(hasattr(torch, 'tt')); import tt_torch.device; print(torch.ones(1, device='tt').is_tt)"
    done = run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.stdout.split() == ["False", "True"], done.stderr


# Functions that users of other accelerators expect.
MODULE = """Event Stream current_device current_stream device device_count empty_cache get_amp_supported_dtype
get_device_name get_device_properties get_rng_state get_rng_state_all is_available is_bf16_supported manual_seed
manual_seed_all max_memory_allocated max_memory_reserved memory_allocated memory_reserved memory_stats memory_summary
reset_peak_memory_stats set_device set_rng_state set_stream stream synchronize""".split()


def test_module():
    assert [name for name in MODULE if not callable(getattr(torch.tt, name, None))] == []
    torch.tt.set_device("tt:0")
    with torch.tt.device("tt:0"):
        assert torch.tt.current_device() == 0
    assert torch.tt.is_bf16_supported() and torch.bfloat16 in torch.tt.get_amp_supported_dtype()


def test_methods():
    assert torch.ones(2).tt().is_tt
    assert not torch.ones(2).is_tt
    assert nn.Linear(2, 2).tt().weight.device == torch.device("tt:0")
    assert torch.ones(2).untyped_storage().tt().is_tt
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(3, 2, 4), [3, 2])
    assert packed.tt().is_tt


def test_accelerator():
    assert torch.accelerator.current_accelerator() == torch.device("tt")
    assert torch.accelerator.is_available()
    assert torch.accelerator.device_count() == torch.tt.device_count() == 1


def test_a_device_count_that_is_no_number(forks: Server):
    code = "import torch; print(torch.tt.device_count()); torch.ones(1, device='tt')"
    done = forks.run("-c", code, env={**os.environ, "TT_TORCH_DEVICE_COUNT": "many"})
    assert done.stdout.strip() == "0"
    assert 'TT_TORCH_DEVICE_COUNT is "many", expected a number from 1 to 8' in done.stderr


UNDER_TTNN = """
import torch
torch.manual_seed(0)
print(torch.ones(2).sum().item(), torch.tt.is_available())
for use in (lambda: torch.ones(1, device="tt"), lambda: torch.ones(1).tt(), lambda: torch.nn.Linear(2, 2).to("tt")):
    try:
        use()
    except RuntimeError as error:
        print(error)
"""


def test_the_device_is_not_emulated_in_silence_under_ttnn(forks: Server):
    done = forks.run("-c", UNDER_TTNN, env={**os.environ, "TT_TORCH_DEVICE": "ttnn"})
    first, *errors = done.stdout.splitlines()
    assert first == "2.0 True" and len(errors) == 3, done.stderr
    for error in errors:
        assert error.startswith('TT_TORCH_DEVICE is "ttnn", but device="tt" is an emulated chip; compile the model')
    emulated = forks.run("-c", UNDER_TTNN, env={**os.environ, "TT_TORCH_DEVICE": "emulated"})
    assert len(emulated.stdout.splitlines()) == 1
    unknown = forks.run("-c", UNDER_TTNN, env={**os.environ, "TT_TORCH_DEVICE": "n150"})
    assert 'ValueError: TT_TORCH_DEVICE is "n150", expected emulated or ttnn' in unknown.stderr


SEVERAL = """
import torch
a = torch.arange(3., device="tt:2")
with torch.tt.device(1):
    b = torch.ones(3, device="tt")
    assert torch.tt.current_device() == 1
assert torch.tt.current_device() == 0
assert b.device.index == 1 and (a.to("tt:1") + b).cpu().tolist() == [1, 2, 3]
assert torch.tt.memory_allocated(1) and torch.tt.memory_allocated(2) and not torch.tt.memory_allocated(0)
for wrong in (lambda: a + b, lambda: torch.ones(1, device="tt:3")):
    try:
        wrong()
    except RuntimeError as error:
        print(error)
"""


def test_several_devices(forks: Server):
    done = forks.run("-c", SEVERAL, env={**os.environ, "TT_TORCH_DEVICE_COUNT": "3"})
    first, second = done.stdout.splitlines()
    assert "same device, but one is on tt:1 and another on tt:2" in first
    assert second.startswith("there is no device tt:3; the number of devices is 3")


def test_properties():
    properties = torch.tt.get_device_properties()
    assert (properties.arch, properties.emulated) == ("wormhole_b0", True)
    assert properties.total_memory == torch.tt.mem_get_info()[1]
    assert torch.tt.get_device_name() == "Tenstorrent wormhole_b0 (emulated)"


def test_streams_and_events():
    stream, before, after = torch.tt.Stream(), torch.tt.Event(enable_timing=True), torch.tt.Event(enable_timing=True)
    outside = torch.tt.current_stream()
    with torch.tt.stream(stream):
        before.record()
        torch.randn(50, 50, device="tt") @ torch.randn(50, 50, device="tt")
        after.record()
        assert torch.tt.current_stream() == stream
    torch.tt.synchronize()
    assert torch.tt.current_stream() == outside != stream
    assert stream.query() and after.query()
    assert before.elapsed_time(after) > 0

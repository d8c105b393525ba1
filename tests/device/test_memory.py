"""Device memory: allocated and cached bytes are counted, and running out of memory is reported."""

from __future__ import annotations

import gc
import os

import pytest
import torch
from forked import Server

from tt_torch import runtime

MIB = 2**20


@pytest.fixture(autouse=True)
def nothing_cached():
    gc.collect()
    torch.tt.empty_cache()
    torch.tt.reset_peak_memory_stats()


def test_tensors_are_counted_while_they_live():
    before = torch.tt.memory_allocated()
    kept = torch.empty(MIB, device="tt")
    view = kept.view(2, -1)
    assert torch.tt.memory_allocated() - before == 4 * MIB
    del kept
    assert torch.tt.memory_allocated() - before == 4 * MIB
    del view
    assert torch.tt.memory_allocated() == before
    assert torch.tt.max_memory_allocated() - before == 4 * MIB


def test_results_are_counted():
    before = torch.tt.memory_allocated()
    ones = torch.ones(MIB, device="tt")
    result = ones * 2  # the allocator gets this memory only after the kernel has written it
    assert torch.tt.memory_allocated() - before == 8 * MIB
    assert result.untyped_storage().nbytes() == 4 * MIB


def test_freed_memory_is_cached_and_used_again():
    del_me = torch.empty(MIB, device="tt")
    reserved = torch.tt.memory_reserved()
    del del_me
    assert torch.tt.memory_reserved() == reserved
    again = torch.empty(MIB, device="tt")
    assert torch.tt.memory_reserved() == reserved
    del again
    torch.tt.empty_cache()
    assert torch.tt.memory_reserved() < reserved


def test_eager_tensors_are_in_the_memory_that_compiled_programs_use():
    dram = lambda: runtime.default_device().memory_stats()["dram"]["allocated"]  # noqa: E731
    before = dram()
    kept = torch.empty(8 * MIB, dtype=torch.uint8, device="tt")
    assert dram() - before >= kept.nbytes


def test_out_of_memory_names_what_is_live():
    kept = torch.empty(64 * MIB, dtype=torch.uint8, device="tt")
    with pytest.raises(torch.OutOfMemoryError) as caught:
        torch.empty(13 * 2**30, dtype=torch.uint8, device="tt")
    text = str(caught.value)
    assert "DRAM of the device is exhausted" in text
    assert f"eager tensor of up to {kept.nbytes} bytes" in text
    assert torch.ones(3, device="tt").sum().item() == 3  # the device can still be used


RESIZE = """
import torch, tt_torch
storage = torch.ones(3, device="tt:1").untyped_storage()
try:
    storage.resize_(13 * 2**30)
except torch.OutOfMemoryError:
    print(torch.tt.current_device(), torch.empty(1, device="tt").device, storage.nbytes())
"""


def test_a_failing_resize_does_not_change_the_current_chip(forks: Server):
    done = forks.run("-c", RESIZE, env={**os.environ, "TT_TORCH_DEVICE_COUNT": "2"})
    assert done.stdout == "0 tt:0 12\n", done.stderr


def test_cache_makes_room():
    torch.empty(7 * 2**30, dtype=torch.uint8, device="tt")  # freed at once, and cached
    torch.empty(8 * 2**30, dtype=torch.uint8, device="tt")
    assert torch.tt.memory_stats()["num_alloc_retries"] > 0


def test_summary():
    kept = torch.empty(512, dtype=torch.uint8, device="tt")
    rows = {line.split()[0]: line.split()[1:] for line in torch.tt.memory_summary().splitlines()}
    assert rows["allocated"][0] == f"{torch.tt.memory_allocated():,}"
    assert kept.nbytes == 512


def test_empty_tensors_take_nothing():
    before = torch.tt.memory_allocated()
    empty = torch.empty(0, 3, device="tt")
    assert torch.tt.memory_allocated() == before
    assert (empty + 1).shape == (0, 3)


def test_no_leak_in_a_training_loop():
    model = torch.nn.Linear(8, 8).tt()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step():
        optimizer.zero_grad()
        model(torch.randn(4, 8, device="tt")).square().mean().backward()
        optimizer.step()

    step()
    step()
    gc.collect()  # otherwise tensors of earlier tests, in cycles of references, could be freed between the measurements
    before = torch.tt.memory_allocated(), torch.tt.memory_reserved()
    for _ in range(200):
        step()
    assert (torch.tt.memory_allocated(), torch.tt.memory_reserved()) == before


def test_pinned_memory():
    pinned = torch.randn(4).pin_memory()
    assert pinned.is_pinned() and pinned[1:].is_pinned()
    assert not torch.randn(4).is_pinned()
    assert torch.equal(pinned.to("tt", non_blocking=True).cpu(), pinned)
    with pytest.raises(RuntimeError, match="only memory of the CPU can be pinned"):
        torch.empty(1, device="tt", pin_memory=True)

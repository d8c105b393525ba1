"""After a write to a weight that PyTorch does not count, the next call computes with the new values."""

from __future__ import annotations

import copy
import ctypes
import math
import mmap
import os
import platform
import random
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import tt_torch
from tt_torch.runtime import _runtime

SIZE = 256  # a weight then has 256 KiB, which is too large to be read whole at every call


@pytest.fixture(params=["tracked", "sampled"], autouse=True)
def tracking(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs each test with the write tracking of the Linux kernel, and without it."""
    _runtime.Fingerprint.use_write_tracking(request.param == "tracked")
    yield request.param
    _runtime.Fingerprint.use_write_tracking(True)


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(SIZE, SIZE), nn.ReLU(), nn.Linear(SIZE, SIZE)).eval()


def _merge(m: nn.Module) -> None:
    """Adds a product to a weight, as peft's `merge_adapter` does."""
    m[0].weight.data += (torch.randn(SIZE, 4) @ torch.randn(4, SIZE)).to(m[0].weight.device)


def _average(m: nn.Module) -> None:
    for p in m.parameters():
        p.data.mul_(0.9).add_(torch.randn_like(p), alpha=0.1)


def _through_numpy(m: nn.Module) -> None:
    m[2].weight.detach().numpy()[:] = 0.5


def _through_dlpack(m: nn.Module) -> None:
    torch.from_dlpack(m[2].weight.detach()).fill_(0.25)


def _from_a_file(m: nn.Module) -> None:
    """The operating system, and not the process, writes to the memory."""
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(torch.randn(65, SIZE).numpy().tobytes())
        file.seek(0)
        file.readinto(m[0].weight.detach().numpy()[3:68])


def _rows(m: nn.Module) -> None:
    m[0].weight.data[5:70] = 1.5


def _columns(m: nn.Module) -> None:
    m[0].weight.data[:, ::64] = 8.0


WRITES: list[Callable[[nn.Module], None]] = [
    lambda m: m[0].weight.data.clamp_(-0.01, 0.01),
    lambda m: m[2].weight.data.neg_(),
    lambda m: m[0].bias.data.zero_(),
    lambda m: m[0].weight.data.copy_(torch.randn(SIZE, SIZE)),
    _merge,
    _average,
    _rows,
    _columns,
]
WRITES_OF_OTHERS = [_through_numpy, _through_dlpack, _from_a_file]  # these cannot get memory of the device tt
CASES = [("tt", write) for write in WRITES] + [("cpu", write) for write in WRITES + WRITES_OF_OTHERS]


@pytest.mark.parametrize(("device", "write"), CASES)
def test_torch_compile_sees_the_write(write: Callable[[nn.Module], None], device: str) -> None:
    ours, x = model().to(device), torch.randn(2, SIZE, device=device)
    run = torch.compile(ours, backend=tt_torch.backend)
    with torch.no_grad():
        for calls in (0, 2):
            for _ in range(calls):
                run(x)
            write(ours)
            torch.testing.assert_close(run(x).cpu(), copy.deepcopy(ours).cpu()(x.cpu()), rtol=1e-4, atol=1e-4)


def kernel_helps() -> bool:
    """Whether Linux is 6.7 or later and lets this process watch its memory. Asks the kernel, and not the runtime."""
    version = re.match(r"(\d+)\.(\d+)", platform.release())
    if version is None or tuple(map(int, version.groups())) < (6, 7) or platform.machine() != "x86_64":
        return False
    userfaultfd, user_mode_only = 323, 1
    descriptor = ctypes.CDLL(None).syscall(userfaultfd, os.O_CLOEXEC | os.O_NONBLOCK | user_mode_only)
    if descriptor >= 0:
        os.close(descriptor)
    return bool(descriptor >= 0)


def test_one_element_is_seen_at_once_where_the_kernel_helps() -> None:
    if not kernel_helps():
        pytest.skip("this kernel is older than Linux 6.7, or a sandbox forbids userfaultfd")
    assert _runtime.Fingerprint.use_write_tracking(True)
    ours, x = model(), torch.randn(2, SIZE)
    run = torch.compile(ours, backend=tt_torch.backend)
    with torch.no_grad():
        run(x)
        for i in range(5):
            run(x)
            ours[0].weight.data[i, 3 * i] += 100
            torch.testing.assert_close(run(x), ours(x), rtol=1e-4, atol=1e-4)


def test_compiled_models_loaded_programs_and_later_compilations_see_the_write(tmp_path: Path) -> None:
    ours, x = model(), torch.randn(2, SIZE)
    compiled = tt_torch.compile_model(ours, (x,))
    compiled.save(tmp_path / "model.ttnn")
    loaded, arguments = tt_torch.load(tmp_path / "model.ttnn"), compiled.arguments(x)
    for _ in range(3):
        compiled(x)
        loaded(*arguments)
    for p in ours.parameters():
        p.data.mul_(-2)
    with torch.no_grad():
        expected = ours(x)
        torch.testing.assert_close(tt_torch.compile_model(ours, (x,))(x), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(compiled(x), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(loaded(*arguments)[0], expected, rtol=1e-4, atol=1e-4)


def test_one_element_is_seen_where_everything_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TT_TORCH_COMPARE_WEIGHTS", "1")
    ours, x = model(), torch.randn(2, SIZE)
    run = torch.compile(ours, backend=tt_torch.backend)
    with torch.no_grad():
        for i in range(5):
            run(x)
            ours[0].weight.data[i, 3 * i] += 100
            torch.testing.assert_close(run(x), ours(x), rtol=1e-4, atol=1e-4)


def test_refresh_shows_the_write() -> None:
    ours, x = model(), torch.randn(2, SIZE)
    run = torch.compile(ours, backend=tt_torch.backend)
    with torch.no_grad():
        for _ in range(3):
            run(x)
        ours[0].weight.data[0, 0] += 100
        tt_torch.refresh(ours)
        torch.testing.assert_close(run(x), ours(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("row", [0, 100, 200, 255])
def test_a_write_to_one_element_is_seen_after_256_calls_at_the_latest(row: int) -> None:
    values = torch.randn(SIZE, SIZE)
    memory = _runtime.Fingerprint(values, "values")
    values.data[row, 200] += 1
    assert not all(memory.same() for _ in range(256))


def _misses(memory: Any, values: torch.Tensor, places: Callable[[], slice], writes: int) -> int:
    """Counts how many of `writes` writes the next call misses. `places` gives the place of each write."""
    missed = 0
    for _ in range(writes):
        written = places()
        before = values[written].clone()
        values.data[written] += 1
        missed += memory.same()
        values.data[written] = before
    return missed


@pytest.mark.parametrize("tracking", ["sampled"], indirect=True)
def test_writes_without_a_gap_are_missed_as_often_as_documented() -> None:
    """One chunk of each group of 256 is compared. 64 KiB hold a whole group of 32 KiB at any start."""
    rng, more = random.Random(0), torch.zeros((1 << 18) + mmap.PAGESIZE)
    start_of_page = -more.data_ptr() % mmap.PAGESIZE // 4  # before it, every byte would be compared
    values = more[start_of_page : start_of_page + (1 << 18)]
    memory = _runtime.Fingerprint(values, "values")
    for size, seen in ((32, 1 / 256), (1024, 32 / 256), (16384, 1)):

        def place(size: int = size) -> slice:
            start = 32 * rng.randrange((len(values) - size) // 32)
            return slice(start, start + size)

        deviation = math.sqrt(2000 * seen * (1 - seen))
        assert _misses(memory, values, place, 2000) == pytest.approx(2000 * (1 - seen), abs=4 * deviation)


@pytest.mark.parametrize("tracking", ["sampled"], indirect=True)
@pytest.mark.parametrize("stride", [8192, 10000, 16384, 24576, 65536])
def test_columns_are_missed_as_often_as_documented(stride: int) -> None:
    """A column has an element in each row of `stride` elements, so its elements are in different groups."""
    rng, values, rows = random.Random(stride), torch.zeros(1 << 22), 60
    memory = _runtime.Fingerprint(values, "values")

    def column() -> slice:
        start = rng.randrange(len(values) - rows * stride)
        return slice(start, start + rows * stride, stride)

    missed = (255 / 256) ** rows
    deviation = math.sqrt(1000 * missed * (1 - missed))
    assert _misses(memory, values, column, 1000) == pytest.approx(1000 * missed, abs=4 * deviation)


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 129])
def test_every_byte_of_small_memory_counts(count: int) -> None:
    values = torch.zeros(count, dtype=torch.uint8)
    memory = _runtime.Fingerprint(values, "values")
    for i in range(count):
        values.data[i] = 1
        assert not memory.same()
        values.data[i] = 0
        assert memory.same()


def watched(values: torch.Tensor) -> bool:
    """Whether Linux watches the memory in the middle of a tensor for writes."""
    middle = values.data_ptr() + values.nbytes // 2
    found = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if bounds := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            found = int(bounds[1], 16) <= middle < int(bounds[2], 16)
        elif found and line.startswith("VmFlags:"):
            return "uw" in line.split()
    raise AssertionError("the tensor is in no mapping")


@pytest.mark.parametrize("tracking", ["tracked"], indirect=True)
def test_memory_is_watched_while_it_does_not_change(tracking: str) -> None:
    if not kernel_helps():
        pytest.skip("this kernel does not tell which pages were written")
    still, changing = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)
    memory, same, other = (_runtime.Fingerprint(values, "values") for values in (still, still, changing))
    for _ in range(3):
        assert memory.same() and same.same()
        changing.data.add_(1)
        assert not other.same()
    assert watched(still) and not watched(changing)
    del memory
    assert watched(still)
    del same
    assert not watched(still)


def test_values_that_come_back_are_the_same() -> None:
    values = torch.randn(SIZE, SIZE)
    memory = _runtime.Fingerprint(values, "values")
    for _ in range(3):
        values.data.add_(0)
        assert memory.same()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool])
def test_signs_and_exchanged_elements_change_the_fingerprint(dtype: torch.dtype) -> None:
    """After these changes, sums or products of bits would be equal."""
    changes = [lambda v: v.flip(0), lambda v: v.roll(1), torch.logical_not if dtype == torch.bool else torch.neg]
    for change in changes:
        values = torch.arange(1 << 17).remainder(199).to(dtype)
        memory = _runtime.Fingerprint(values, "values")
        values.copy_(change(values.clone()))
        assert not memory.same(whole=True)
        assert not memory.same()


@pytest.mark.parametrize("seed", range(30))
def test_overlapping_tensors_find_each_others_writes(seed: int) -> None:
    """A page that was found to be written is protected again. All fingerprints over it must learn of the write."""
    generator = random.Random(seed)
    base, length = torch.randn(1 << 17), 1 << 15
    starts = [generator.randrange(1 << 15) for _ in range(6)]
    ranges = [range(start, start + generator.randrange(1 << 15, 1 << 16)) for start in starts]
    memories = {r: _runtime.Fingerprint(base[r.start : r.stop], "part") for r in ranges}
    for _ in range(generator.randrange(4)):
        generator.shuffle(ranges)
        assert all(memories[r].same() for r in ranges)
    del memories[ranges.pop()]
    begin = generator.randrange(1 << 16)
    base.data[begin : begin + length] += 1
    for r in ranges:
        common = min(r.stop, begin + length) - max(r.start, begin)
        same = memories[r].same()
        assert same or common > 0
        assert not same or common < 16384


def test_freed_and_reused_memory_does_not_confuse() -> None:
    for i in range(50):
        values = torch.full((SIZE, SIZE), float(i))
        memory = _runtime.Fingerprint(values, "values")
        assert all(memory.same() for _ in range(3))
        values.data[16:96] = -1
        assert not memory.same()
        del values, memory


def test_shared_memory_that_another_process_writes_is_seen() -> None:
    """The page table of this process does not show the write."""
    values = torch.zeros(SIZE, SIZE).share_memory_()
    memory = _runtime.Fingerprint(values, "values")
    assert all(memory.same() for _ in range(3))
    child = os.fork()
    if child == 0:
        values.data[64:128] = 1
        os._exit(0)
    os.waitpid(child, 0)
    assert not memory.same()


def test_a_forked_child_sees_its_own_writes_and_the_parent_its_own() -> None:
    values = torch.zeros(SIZE, SIZE)
    memory = _runtime.Fingerprint(values, "values")
    assert all(memory.same() for _ in range(3))
    child = os.fork()
    if child == 0:
        values.data[64:128] = 1
        os._exit(0 if not memory.same() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert memory.same()
    values.data[64:128] = 1
    assert not memory.same()

"""A small run of each kind of hostile file: each is refused or read, and none ends its process."""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import time

import pytest

from tests.fuzz_files import children, kinds, ops, packages, reading
from tt_torch.errors import TTTorchError
from tt_torch.runtime import Binary

COUNTS = {
    "package": 400,
    "op": 1200,  # one in 60 is read
    "row": 800,
    "joined": 400,
    "any": 200,
    "bytes": 2000,
    "parts": 2000,
    "system": 200,
    "records": 200,
    "stablehlo": 100,
}


@pytest.fixture(scope="module", autouse=True)
def prepared():
    kinds.prepare()  # children are forks of this process


@pytest.mark.slow
@pytest.mark.parametrize("kind", kinds.KINDS)
def test_nothing_is_found(kind, tmp_path):
    outcomes = children.try_range(kind, range(COUNTS[kind]), tmp_path)
    assert not any(outcomes[finding] for finding in children.FINDINGS), sorted(tmp_path.iterdir())
    assert min(outcomes["read"], outcomes["refused"]) >= COUNTS[kind] // 100


def test_every_kernel_has_files():
    assert len(ops.kernels()) > 80 and len(ops.rows()) > 60


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_a_number_is_always_the_same_file(kind):
    assert kinds.made(kind, 77) == kinds.made(kind, 77)
    assert kinds.made(kind, 77) != kinds.made(kind, 78)


def test_changes_of_a_package_do_not_reach_later_ones():
    before = repr(packages.VALUES)
    for seed in range(300):
        part, rng = {"a": [1], "b": {"c": 2}}, random.Random(seed)
        for _ in range(3):
            packages._change(rng, part)
        assert repr(packages.VALUES) == before


def crash():
    faulthandler.disable()  # pytest's handler would report this child's crash as if it were one of the suite
    os.kill(os.getpid(), signal.SIGSEGV)


FAULTS = {
    "crash": (crash, "died", "SIGSEGV"),
    "hang": (lambda: [None for _ in iter(int, 1)], "died", "SIGPROF"),
    "exit": (lambda: os._exit(3), "died", "exit-3"),
    "exception": (lambda: {}["part"], "raised", "KeyError"),
    "memory": (lambda: bytearray(2 * children.MOST_MAPPED), "raised", "MemoryError"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_kept_and_the_files_behind_it_are_tried(fault, tmp_path, monkeypatch):
    harm, outcome, cause = FAULTS[fault]

    def try_file(ending, data, *rest, **options):
        if data == kinds.made("row", 2)[1]:
            harm()
        return "read"

    monkeypatch.setattr(reading, "try_file", try_file)
    monkeypatch.setattr(children, "SECONDS", 0.2)
    monkeypatch.setattr(kinds, "made", made := lambda kind, number: (".ttnn", str(number).encode()))
    assert children.try_range("row", range(5), tmp_path) == {"read": 4, outcome: 1}
    assert (tmp_path / f"row_2_{cause}.ttnn").read_bytes() == made("row", 2)[1]
    assert (tmp_path / f"row_2_{cause}.txt").exists()


@pytest.mark.parametrize("keep", [0, 3, 4, 11, 12, 40])
def test_short_files_are_format_errors(keep):
    with pytest.raises(TTTorchError, match="not a valid TTNN binary"):
        Binary(kinds.binaries()[0][:keep])


def test_files_take_little_time_and_leave_nothing_on_the_device(tmp_path):
    device, slowest = reading.device(), 0.0
    for number in range(300):
        _, data = kinds.made("row", random.Random(number).randrange(1 << 40))
        start = time.process_time()
        if data:
            reading.try_file(".ttnn", data, tmp_path, device, tools=False)
        slowest = max(slowest, time.process_time() - start)
    assert slowest < 5.0  # seconds of the processor
    assert device.memory_stats()["dram"]["allocated"] == 0

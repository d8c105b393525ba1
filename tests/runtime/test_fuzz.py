"""Damaged binaries raise one of our errors, or load and run. They never crash the process."""

import random
import time
from pathlib import Path

import pytest
import torch

from tt_torch.errors import TTTorchError
from tt_torch.runtime import Binary, Device, Executable
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode

DATA = Path(__file__).parents[1] / "data" / "runtime"
MUTATIONS = 10_000
SMALL = 1 << 16  # bytes per memory bank, so that a damaged shape cannot allocate gigabytes


def flip_bits(rng, data, other):
    for _ in range(rng.choice((1, 1, 2, 8))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def set_word(rng, data, other):
    at = rng.randrange(len(data) // 4) * 4
    data[at : at + 4] = rng.choice((0, 1, 2, 7, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)).to_bytes(4, "little")


def truncate(rng, data, other):
    del data[rng.randrange(len(data)) :]
    if rng.random() < 0.5:  # with a length prefix that agrees, so that later checks find the damage
        data[:4] = max(len(data) - 4, 0).to_bytes(4, "little")


def splice(rng, data, other):
    start, size = rng.randrange(len(data)), rng.randrange(1, 200)
    source = rng.randrange(len(other))
    piece = other[source : source + min(size, len(data) - start)]
    data[start : start + len(piece)] = piece


def without_text(path):
    """The binary without IR text and device description, so that mutations hit parts that the runtime reads."""
    message = decode(path.read_bytes())
    slim = {key: message[key] for key in ("version", "schema_hash", "programs")}
    for program in slim["programs"]:
        program.pop("debug_info", None)
        for op in program["operations"]:
            op["debug_info"] = ""
    return encode(slim)


def try_to_run(data, device):
    executable = Executable(Binary(bytes(data)), 0, device)
    # Expanded scalars are inputs of any shape that take no memory.
    types = [torch.float32 if "Float" in spec.dtype.name else torch.int32 for spec in executable.inputs]
    shapes = [spec.shape for spec in executable.inputs]
    executable([torch.ones((), dtype=t).expand(shape) for t, shape in zip(types, shapes, strict=True)])


def test_mutated_binaries_never_crash():
    rng = random.Random(7)
    corpus = [without_text(path) for path in sorted(DATA.glob("*.ttnn"))]
    device = Device(dram_bank_size=SMALL, l1_bank_size=SMALL, host_memory_size=64 * SMALL)
    outcomes, slowest = {"ran": 0, "refused": 0}, 0.0
    for _ in range(MUTATIONS):
        data = bytearray(rng.choice(corpus))
        rng.choice((flip_bits, set_word, set_word, truncate, splice))(rng, data, rng.choice(corpus))
        start = time.perf_counter()
        try:
            try_to_run(data, device)
            outcomes["ran"] += 1
        except TTTorchError:
            outcomes["refused"] += 1
        slowest = max(slowest, time.perf_counter() - start)
    assert min(outcomes.values()) > MUTATIONS // 20, outcomes
    assert device.memory_stats()["dram"]["allocated"] == 0
    assert slowest < 5.0  # seconds; a program is refused before anything large is computed


@pytest.mark.parametrize("keep", [0, 3, 4, 11, 12, 40])
def test_short_files_are_format_errors(keep):
    data = next(iter(sorted(DATA.glob("*.ttnn")))).read_bytes()[:keep]
    with pytest.raises(TTTorchError, match="not a valid TTNN binary"):
        Binary(data)

"""The emulated memory of a chip: its size, its allocator, and what the error says when it is exhausted."""

import json
import random
import re
from pathlib import Path

import pytest
import torch
from programs import Maker, chain_of_adds

import tt_torch.wire
from tt_torch.errors import DeviceMemoryError
from tt_torch.runtime import Binary, Device, Executable, _runtime

CHIPS = json.loads((Path(tt_torch.wire.__file__).parent / "system_descs.json").read_text())
TILE_BYTES = 4096  # of float32


@pytest.mark.parametrize("arch", CHIPS)
def test_a_chip_has_the_memory_of_its_description(arch):
    chip, memory = CHIPS[arch], Device(arch=arch).memory_stats()
    dram = chip["dram_unreserved_end"] - chip["dram_unreserved_base"]
    l1 = chip["l1_size"] - chip["l1_unreserved_base"]
    cores = chip["grid_size"]["y"] * chip["grid_size"]["x"]
    for stats, size, banks in ((memory["dram"], dram, chip["num_dram_channels"]), (memory["l1"], l1, cores)):
        assert (stats["banks"], stats["largest_free"], stats["total"]) == (banks, size, size * banks)
        assert stats["allocated"] == stats["peak"] == 0 and not stats["live"]


class Memory:
    """A device with banks of a few tiles. The tensors on it take a number of tiles in each bank."""

    def __init__(self, tiles):
        self.device = Device(dram_bank_size=tiles * TILE_BYTES)
        self.banks = self.stats()["banks"]

    def take(self, tiles):
        values = torch.zeros(32 * self.banks * tiles, 32)
        maker = Maker()
        maker.input(values.shape)
        spec = Executable(Binary(maker.binary())).inputs[0]
        return _runtime.Tensor(self.device._impl, spec, values, values.untyped_storage(), "x")

    def stats(self):
        return self.device.memory_stats()["dram"]


@pytest.mark.parametrize("seed", range(4))
def test_a_tensor_takes_the_smallest_free_block_that_fits(seed):
    """The test has a model of one bank: its free blocks by their address, and the blocks of the tensors."""
    chance, memory = random.Random(seed), Memory(24)
    free, held, peak = {0: 24}, [], 0
    for _ in range(150):
        if held and chance.random() < 0.45:
            address, size = held.pop(chance.randrange(len(held)))[1:]
            free[address] = size
            for at in sorted(free):
                while at in free and at + free[at] in free:
                    free[at] += free.pop(at + free[at])
        else:
            size = chance.choice((1, 1, 2, 3, 5))
            block = min(((room, at) for at, room in free.items() if room >= size), default=None)
            if block is None:
                with pytest.raises(DeviceMemoryError):
                    memory.take(size)
                continue
            room, address = block
            del free[address]
            if room > size:
                free[address + size] = room - size
            held.append((memory.take(size), address, size))
        used = sum(size for *_, size in held)
        peak, stats = max(peak, used), memory.stats()
        assert stats["largest_free"] == TILE_BYTES * max(free.values(), default=0)
        assert (stats["allocated"], stats["peak"]) == tuple(TILE_BYTES * memory.banks * n for n in (used, peak))
        assert sorted(n for _, n in stats["live"]) == sorted(TILE_BYTES * memory.banks * n for *_, n in held)


def test_the_error_names_the_largest_buffers():
    memory = Memory(48)
    with pytest.raises(DeviceMemoryError) as caught:
        memory.take(49)
    assert str(caught.value).endswith("largest live buffers: none\n  use smaller inputs")
    held = [memory.take(tiles) for tiles in (3, 9, 1, 8, 2, 7, 4, 6, 5)]  # 45
    with pytest.raises(DeviceMemoryError) as caught:
        memory.take(4)
    text = str(caught.value)
    assert text.startswith(
        f"DRAM of the device is exhausted: resident tensor {32 * 4 * memory.banks}x32 Float32 tile dram"
    )
    assert f"needs {4 * TILE_BYTES} bytes in each of {memory.banks} banks" in text
    assert f"the largest free block is {3 * TILE_BYTES} of {48 * TILE_BYTES}\n" in text
    listed = [int(size) // TILE_BYTES // memory.banks for size in re.findall(r"\n    (\d+) bytes: ", text)]
    assert listed == [9, 8, 7, 6, 5, 4, 3, 2]
    assert text.endswith("free some of them, or use smaller inputs") and len(held) == 9


@pytest.mark.parametrize("buffer, words", [("DRAM", "DRAM of the device"), ("L1", "L1 of the device"),
                                           ("host", "host memory for the device")])  # fmt: skip
def test_the_error_names_the_memory_and_lists_its_buffers_only(buffer, words):
    small = 3 * TILE_BYTES
    device = Device(dram_bank_size=small, l1_bank_size=small, host_memory_size=small)
    maker = Maker()
    maker.input((32, 32), buffer="L1" if buffer == "DRAM" else "DRAM")
    other = Executable(Binary(maker.binary()), device=device)
    value = torch.zeros(32, 32)
    other([value], {0})
    program = Executable(Binary(chain_of_adds(1, (2048, 2048), buffer=buffer)), device=device)
    with pytest.raises(DeviceMemoryError, match=f"{words} is exhausted: input 0 2048x2048") as caught:
        program([torch.zeros(2048, 2048)] * 2)
    assert str(caught.value).endswith("largest live buffers: none\n  use smaller inputs")

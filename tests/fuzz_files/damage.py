"""Damages the bytes of files: anywhere, or where the format has an offset, a length, a vtable or a number."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field
from functools import cache

from tt_torch.wire.decode import Reader, TablePlan, read
from tt_torch.wire.messages import Record

WORDS = (0, 1, 2, 3, 7, 32, 255, 0x10000, 0x40000000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def anywhere(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Changes bytes without regard to the format."""
    damaged = bytearray(data)
    rng.choice((_flip_bits, _set_word, _set_word, _truncate, _splice))(rng, damaged, other)
    return bytes(damaged)


def _flip_bits(rng, data, other):
    for _ in range(rng.choice((1, 1, 2, 8))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set_word(rng, data, other):
    at = rng.randrange(len(data) // 4) * 4
    data[at : at + 4] = rng.choice(WORDS).to_bytes(4, "little")


def _truncate(rng, data, other):
    del data[rng.randrange(len(data)) :]
    if rng.random() < 0.5:  # the length prefix agrees then, so that later checks find the damage
        data[:4] = max(len(data) - 4, 0).to_bytes(4, "little")


def _splice(rng, data, other):
    start, size = rng.randrange(len(data)), rng.randrange(1, 200)
    source = rng.randrange(len(other))
    piece = other[source : source + min(size, len(data) - start)]
    data[start : start + len(piece)] = piece


@dataclass
class Structure:
    """Where a file has offsets (with what they point at), lengths (with the width of an element), and tables."""

    offsets: list[tuple[int, str, int]] = field(default_factory=list)
    lengths: list[tuple[int, int]] = field(default_factory=list)
    tables: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)  # position, offsets of the fields


class _Surveyor(Reader):
    """A reader that notes where each part of a file is."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.found = Structure()

    def follow(self, pos: int, what: str) -> int:
        target = super().follow(pos, what)
        self.found.offsets.append((pos, what, target))
        return target

    def vector(self, pos: int, width: int, what: str) -> tuple[int, int]:
        self.found.lengths.append((pos, width))
        return super().vector(pos, width, what)

    def string(self, pos: int, what: str) -> str:
        self.found.lengths.append((pos, 1))
        return super().string(pos, what)

    def _table(self, plan: TablePlan, pos: int) -> Record:
        self.found.tables.append((pos, self.vtable(pos, plan.name)[1]))
        return super()._table(plan, pos)


@cache
def structure(data: bytes) -> Structure:
    surveyor = _Surveyor(data)
    read(surveyor)
    return surveyor.found


def parts(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Changes one to four offsets, lengths, vtables or numbers of a sound file."""
    damaged, found = bytearray(data), structure(data)
    for _ in range(rng.randint(1, 4)):
        rng.choice((_offset, _offset, _length, _vtable, _slot, _number, _number))(rng, damaged, found)
    return bytes(damaged)


def _offset(rng, data, found):
    """Makes an offset point at an object of the same field, at any object, or at any word."""
    at, what, _ = rng.choice(found.offsets)
    alike = [target for _, field, target in found.offsets if field == what]
    anything = rng.choice(found.offsets)[2] if rng.random() < 0.7 else 4 * rng.randrange(len(data) // 4)
    target = rng.choice(alike) if rng.random() < 0.6 else anything
    struct.pack_into("<I", data, at, (target - at) % (1 << 32))


def _length(rng, data, found):
    at, width = rng.choice(found.lengths)
    count = struct.unpack_from("<I", data, at)[0]
    wrong = (count + 1, count - 1, 2 * count, (len(data) - at - 4) // width, rng.choice(WORDS))
    struct.pack_into("<I", data, at, rng.choice(wrong) % (1 << 32))


def _vtable(rng, data, found):
    """Gives a table the vtable of another one."""
    (at, _), (other, _) = rng.choice(found.tables), rng.choice(found.tables)
    vtable = other - struct.unpack_from("<i", data, other)[0]
    struct.pack_into("<i", data, at, at - vtable)


def _slot(rng, data, found):
    """Changes the place of a field in a table."""
    at, offsets = rng.choice(found.tables)
    vtable = at - struct.unpack_from("<i", data, at)[0]
    slot = rng.randrange(-2, len(offsets))  # the first two are the sizes of the vtable and of the table
    if 0 <= vtable + 4 + 2 * slot <= len(data) - 2:
        struct.pack_into("<H", data, vtable + 4 + 2 * slot, rng.choice((0, 4, 5, 8, 0xFFFF, *offsets)))


def _number(rng, data, found):
    """Changes the value of a field of a table, which may be a number, a tag or an offset."""
    at, offsets = rng.choice(found.tables)
    present = [offset for offset in offsets if offset]
    if present:
        letter = rng.choice("BBHIIQ")
        place = at + rng.choice(present)
        if place + struct.calcsize(letter) <= len(data):
            struct.pack_into("<" + letter, data, place, rng.choice(WORDS) % (1 << 8 * struct.calcsize(letter)))

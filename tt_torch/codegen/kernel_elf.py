"""Makes the one program that the stand-in for the kernel compiler writes."""

from __future__ import annotations

import struct

TEXT, DATA = 0x6000, 0xFFB00000  # the addresses at which the loader expects code and data
_PROGBITS, _SYMTAB, _STRTAB, _RELA = 1, 2, 3, 4
_CODE = struct.pack("<III", 0xFFB00537, 0x00050513, 0x00008067)  # lui a0, %hi(value); mv a0, a0; ret


def minimal_kernel() -> bytes:
    """The smallest ELF32 executable for RISC-V that the library's loader accepts: a segment of code, a segment of
    data that follows it, and a section of relocations."""
    names = b"\0.text\0.data\0.rela\0.symtab\0.strtab\0value\0_start\0"

    def name(text: bytes) -> int:
        return names.index(b"\0" + text + b"\0") + 1

    symbol = struct.Struct("<IIIBBH").pack
    symbols = symbol(0, 0, 0, 0, 0, 0)
    symbols += symbol(name(b"value"), DATA, 4, 0x11, 0, 2)
    symbols += symbol(name(b"_start"), TEXT, 12, 0x12, 0, 1)
    contents = [
        _CODE,
        struct.pack("<I", 1),
        struct.pack("<IIi", TEXT, 1 << 8 | 26, 0) + struct.pack("<IIi", TEXT + 4, 1 << 8 | 27, 0),  # HI20, LO12
        symbols,
        names,
    ]
    headers = 52 + 2 * 32
    offsets = [headers + sum(map(len, contents[:i])) for i in range(len(contents))]
    section = struct.Struct("<10I").pack
    kinds = (  # name, type, flags, address, link, info, size of an entry
        (b".text", _PROGBITS, 6, TEXT, 0, 0, 0),
        (b".data", _PROGBITS, 3, DATA, 0, 0, 0),
        (b".rela", _RELA, 0x40, 0, 4, 1, 12),
        (b".symtab", _SYMTAB, 0, 0, 5, 1, 16),
        (b".strtab", _STRTAB, 0, 0, 0, 0, 0),
    )
    table = bytes(40)
    for (label, kind, flags, address, link, info, entry), offset, content in zip(kinds, offsets, contents, strict=True):
        table += section(name(label), kind, flags, address, offset, len(content), link, info, 4, entry)
    end = offsets[-1] + len(names)
    start = -(-end // 4) * 4
    segment = struct.Struct("<8I").pack
    sizes = len(contents[0]), len(contents[1])
    header = b"\x7fELF\x01\x01\x01" + bytes(9)
    header += struct.pack("<HHIIIIIHHHHHH", 2, 243, 1, TEXT, 52, start, 0, 52, 32, 2, 40, 6, 5)
    header += segment(1, offsets[0], TEXT, TEXT, sizes[0], sizes[0], 5, 4)
    header += segment(1, offsets[1], DATA, TEXT + sizes[0], sizes[1], sizes[1], 6, 4)
    return header + b"".join(contents) + bytes(start - end) + table

"""`decode` raises BinaryFormatError for bytes that are no valid file. It needs little time and bounded memory."""

import random
import struct
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tt_torch.errors import BinaryFormatError, SchemaError
from tt_torch.wire.decode import Reader, decode
from tt_torch.wire.encode import encode
from wire.messages import REFERENCES, random_binary

SMALL = encode(random_binary("f3606800", 11, 0.7))
DESCRIPTOR = encode(random_binary("92f6a8a8", 3, 1.0))


def survives(data):
    """True if the data can be decoded, False if BinaryFormatError says why not. Other exceptions fail the test."""
    try:
        decode(data)
    except BinaryFormatError as error:
        assert str(error)
        return False
    return True


@pytest.mark.parametrize("data", [SMALL, DESCRIPTOR], ids=["ttnn", "ttsys"])
def test_every_truncation(data):
    for length in range(0, len(data), 1 + len(data) // 2000):
        assert not survives(data[:length])
        assert not survives(struct.pack("<I", max(length - 4, 0)) + data[4:length]) or length > len(data) - 8


@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.stem)
def test_flipped_bytes(path):
    original, rng = path.read_bytes(), random.Random(path.stem)
    outcomes = [survives(mutated(original, rng)) for _ in range(400)]
    assert not all(outcomes)


def mutated(data, rng):
    """The file with one to four bytes or words changed. Most of the new words are numbers near limits."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) - 4)
        if rng.random() < 0.5:
            data[at] ^= 1 << rng.randrange(8)
        else:
            word = rng.choice([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, len(data), rng.randrange(2**32)])
            struct.pack_into("<I", data, at & ~3, word)
    return bytes(data)


@settings(max_examples=300)
@given(st.binary(max_size=400))
def test_any_bytes(data):
    survives(data)
    survives(struct.pack("<I", len(data) + 8) + struct.pack("<I", 16) + b"TTNN" + data)


@settings(max_examples=300)
@given(st.data())
def test_small_files_with_any_words_replaced(data):
    damaged = bytearray(DESCRIPTOR)
    for at in data.draw(st.lists(st.integers(0, len(damaged) // 4 - 1), min_size=1, max_size=6)):
        struct.pack_into("<I", damaged, 4 * at, data.draw(st.integers(0, 2**32 - 1)))
    survives(bytes(damaged))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "0 bytes are too few"),
        (SMALL[:15], "15 bytes are too few"),
        (SMALL[:16], "the size prefix says"),
        (b"\x7fELF" + bytes(60), "byte 8 has identifier"),
        (SMALL + b"\0", "the size prefix says"),
        (SMALL[:8] + b"TTM0" + SMALL[12:], "b'TTM0'"),
        (SMALL[:8] + b"TTSY" + SMALL[12:], "does not belong to schema f3606800"),
        (SMALL[:4] + b"\xff\xff\xff\x7f" + SMALL[8:], "root table.*not inside"),
    ],
)
def test_messages_say_what_is_wrong(data, words):
    with pytest.raises(BinaryFormatError, match=words):
        decode(data)


def test_a_schema_hash_outside_of_the_file_is_named():
    """In one file, the field lies outside. In the other file, the text that it refers to lies outside."""
    root = 4 + struct.unpack_from("<I", SMALL, 4)[0]
    place = root - struct.unpack_from("<i", SMALL, root)[0] + 6  # of the second field's offset in the table
    field = root + struct.unpack_from("<H", SMALL, place)[0]
    for at, number in ((place, b"\xff\xff"), (field, b"\xff\xff\xff\x7f")):
        with pytest.raises(BinaryFormatError, match=r"^root text: bytes \d+ to \d+ are not inside"):
            decode(SMALL[:at] + number + SMALL[at + len(number) :])


def test_a_text_may_end_with_the_file():
    data = struct.pack("<I", 3) + b"abc\0"
    assert Reader(data).string(0, "text") == "abc"
    with pytest.raises(BinaryFormatError, match="text: bytes 0 to 8 are not inside the 7 bytes"):
        Reader(data[:-1]).string(0, "text")


def test_an_unknown_schema_is_named():
    with pytest.raises(SchemaError, match=r"'a36068002aa.*only for .*ttnn_f3606800.*written by tt-mlir of commit "):
        decode(SMALL.replace(b"f36068002aa", b"a36068002aa"))


def test_an_unknown_op_tag_is_named():
    data = encode({"programs": [{"operations": [{"type": {"CopyOp": {}}}]}]})
    at = data.rindex(bytes([131]))
    with pytest.raises(BinaryFormatError, match=r"Operation.type.*OpType has no member 200"):
        decode(data[:at] + bytes([200]) + data[at + 1 :])


def test_overlapping_vectors_do_not_multiply():
    """3,000 vectors that all reach to the end of the file would have 20 million numbers together."""
    marker = 0x5EAD5EAD
    tensors = [{"global_id": i, "desc": {"shape": [marker, i]}} for i in range(3000)]
    data = bytearray(encode({"programs": [{"inputs": tensors}]}))
    at = data.find(struct.pack("<I", marker))
    while at >= 0:
        struct.pack_into("<I", data, at - 4, (len(data) - at) // 4)
        at = data.find(struct.pack("<I", marker), at + 4)
    start = time.perf_counter()
    with pytest.raises(BinaryFormatError, match="objects overlap"):
        decode(bytes(data))
    assert time.perf_counter() - start < 1


def test_an_absent_part_is_named_with_its_table():
    with pytest.raises(BinaryFormatError, match=r"^TTNNBinary at byte \d+ has no programs$"):
        decode(encode({}))["programs"]

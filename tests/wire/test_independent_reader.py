"""A second reader knows only the wire description. It decodes every file as we do. The runtime accepts our files."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tt_torch.errors import BinaryFormatError
from tt_torch.runtime import Binary
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode
from tt_torch.wire.schema import DEFAULT
from wire.messages import REFERENCES, op_members, random_binary, with_op
from wire.wire_reader import check


@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.stem)
def test_binaries_of_tt_mlir(path):
    data = path.read_bytes()
    message = decode(data)
    again = encode(message)
    assert check(data) == message == decode(again) == check(again)
    assert len(again) <= len(data)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.floats(0.3, 0.8))
def test_random_binaries(seed, density):
    data = encode(random_binary(DEFAULT, seed, density))
    assert check(data) == decode(data)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from(op_members(DEFAULT)), st.floats(0.5, 1.0))
def test_the_runtime_finds_no_damage(seed, member, density):
    """The runtime may refuse an op that lacks a field. It must not report a bad offset, text, vector or alignment."""
    try:
        Binary(encode(with_op(DEFAULT, member, seed, density)))
    except BinaryFormatError as error:
        assert " bad " not in str(error)


def test_the_second_reader_notices_damage():
    data = encode({"programs": [{"operations": [{"type": {"CopyOp": {}}, "loc_info": "here"}]}]})
    for damaged in (data[:-4], data.replace(b"here\0", b"here1"), data.replace(bytes([131]), bytes([132]))):
        with pytest.raises((AssertionError, ValueError)):
            check(damaged)


@pytest.mark.parametrize("place", [0, 1])
def test_an_empty_vector_needs_no_alignment(place):
    """tt-mlir may write empty vectors that are not aligned, with the C++ builder of flatbuffers.

    Here, zeros are added to the end of a file. The offset of an empty vector of eight-byte elements is changed so that
    it points to the zeros. It points to a multiple of eight bytes, or to the word after it.
    """
    activation = {"op_type": "Relu", "params": []}
    data = encode(
        {"programs": [{"operations": [{"type": {"Conv2dOp": {"conv2d_config": {"activation": activation}}}}]}]}
    )
    words = np.append(np.frombuffer(data, "<u4"), [0, 0]).astype("<u4")
    words[0] += 8  # the size prefix
    target = len(words) - 2 + place
    vector = 45  # the word at which the encoder has put the vector
    assert words[vector - 1 : vector + 1].tolist() == [4, 0]
    words[vector - 1] = 4 * (target - (vector - 1))
    Binary(words.tobytes())
    assert decode(words.tobytes()) == decode(data)

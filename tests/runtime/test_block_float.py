"""Block-float rounding and packing, as properties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tt_torch.runtime.block_float import pack_tile, round_to_blocks, unpack_tile

BITS = {"bfp8_b": 7, "bfp4_b": 3}
dtypes = st.sampled_from(sorted(BITS))
values = st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=False)
tiles = arrays(np.float32, (32, 32), elements=values)


@given(tiles, dtypes)
def test_packing_keeps_exactly_the_rounded_values(tile, dtype):
    assert np.array_equal(unpack_tile(pack_tile(tile, dtype), dtype), round_to_blocks(tile, dtype))


@given(tiles, dtypes)
def test_rounding_is_idempotent(tile, dtype):
    rounded = round_to_blocks(tile, dtype)
    assert np.array_equal(round_to_blocks(rounded, dtype), rounded)


@given(arrays(np.float32, (3, 40), elements=values), dtypes)
def test_error_is_bounded_by_the_largest_value_of_the_block(matrix, dtype):
    rounded = round_to_blocks(matrix, dtype)
    for start in range(0, 40, 16):
        block = matrix[:, start : start + 16].astype(np.float64)
        largest = np.abs(block).max(axis=1, keepdims=True)
        unit = 2.0 ** (np.floor(np.log2(np.maximum(largest, 1e-37))) - BITS[dtype] + 1)
        # Half a unit, or a whole one where the largest magnitude cannot round up.
        assert (np.abs(rounded[:, start : start + 16] - block) <= unit).all()


@pytest.mark.parametrize("dtype, size", [("bfp8_b", 1088), ("bfp4_b", 576)])
def test_layout_of_a_tile(dtype, size):
    tile = np.zeros((32, 32), np.float32)
    tile[0, 16] = 1.0  # first row of the second face
    data = pack_tile(tile, dtype)
    assert len(data) == size
    assert [i for i in range(64) if data[i]] == [16] and data[16] == 127
    first = 64 + 256 if dtype == "bfp8_b" else 64 + 128
    assert data[first] == (64 if dtype == "bfp8_b" else 4)


TIES = [(64.5, 64.0), (65.5, 66.0), (65.25, 65.0), (127.75, 127.0), (-65.5, -66.0)]


@pytest.mark.parametrize("value, expected", TIES)
def test_ties_go_to_even_and_the_top_saturates(value, expected):
    block = np.zeros((1, 16), np.float32)
    block[0, 0], block[0, 1] = 64.0, value
    assert round_to_blocks(block, "bfp8_b")[0, 1] == expected

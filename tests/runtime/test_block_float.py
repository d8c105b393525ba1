"""Properties of the rounding and packing of block floats."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from programs import Maker

from tt_torch.runtime import Binary, Executable
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
        # The error is at most half a unit, or a whole one if the largest magnitude cannot round up.
        assert (np.abs(rounded[:, start : start + 16] - block) <= unit).all()


def position_of(row, column):
    """The position of an element in tt-metal's order: faces of 16x16, row by row, and row-major inside a face."""
    face = row // 16 * 2 + column // 16
    return face * 256 + row % 16 * 16 + column % 16


@given(st.integers(0, 31), st.integers(0, 31), dtypes)
def test_order_of_a_tile(row, column, dtype):
    tile = np.zeros((32, 32), np.float32)
    tile[row, column] = -1.0
    data = pack_tile(tile, dtype)
    assert len(data) == {"bfp8_b": 1088, "bfp4_b": 576}[dtype]
    element = position_of(row, column)
    assert {i: data[i] for i in range(64) if data[i]} == {element // 16: 127}
    # bfp4_b has two elements in a byte, the first one in the low half.
    wanted = {64 + element: 0xC0} if dtype == "bfp8_b" else {64 + element // 2: 0xC << 4 * (element % 2)}
    assert {i: data[i] for i in range(64, len(data)) if data[i]} == wanted


@given(st.binary(min_size=1088, max_size=1088), dtypes)
def test_what_was_unpacked_packs_to_the_same_values(data, dtype):
    tile = unpack_tile(data[: {"bfp8_b": 1088, "bfp4_b": 576}[dtype]], dtype)
    normal = np.isnan(tile) | (tile == 0) | (np.abs(tile) >= np.finfo(np.float32).tiny)
    flushed = np.where(normal, tile, 0)  # denormals are zeros
    assert np.array_equal(unpack_tile(pack_tile(tile, dtype), dtype), flushed, equal_nan=True)


anything = arrays(np.float32, (4, 16), elements=st.floats(width=32))


@given(anything, dtypes)
def test_infinities_nan_denormals_and_signs(block, dtype):
    rounded = round_to_blocks(block, dtype)
    assert np.array_equal(round_to_blocks(rounded, dtype), rounded, equal_nan=True)
    assert np.array_equal(np.isinf(rounded)[np.isinf(block)], np.ones(np.isinf(block).sum(), bool))
    assert (rounded[np.abs(block) < np.finfo(np.float32).tiny] == 0).all()
    same_sign = np.signbit(rounded) == np.signbit(block)
    assert (same_sign | (rounded == 0)).all()


@pytest.mark.parametrize(("dtype", "bits"), [("bfp8_b", 0xFF820000), ("bfp4_b", 0x7FA00000)])
def test_a_nan_keeps_the_bits_that_are_packed(dtype, bits):
    """The second one is a signalling NaN, which a conversion to another floating-point type would change."""
    tile = np.zeros((32, 32), np.float32)
    tile.view(np.uint32)[0, 0] = bits
    assert unpack_tile(pack_tile(tile, dtype), dtype).view(np.uint32)[0, 0] == bits


INF, NAN = np.float32(np.inf), np.float32(np.nan)
SPECIAL = [  # the elements of one block, and their rounded values
    ([INF, 1.0, -3.4e38], [INF, 0.0, -INF]),  # with the exponent of an infinity, numbers that are not huge become zero
    ([-INF, 2.0**127, 0.0], [-INF, 2.0**127, 0.0]),
    ([NAN, 1.0, INF], [NAN, 0.0, INF]),
    ([1e-40, -1e-45, 0.0], [0.0, 0.0, 0.0]),  # denormals become zeros
    ([1.0, 1e-40, -0.0], [1.0, 0.0, 0.0]),  # zero has no sign
    ([2.0**-126, 2.0**-126, 1.5 * 2.0**-126], [2.0**-126, 2.0**-126, 1.5 * 2.0**-126]),
]


@pytest.mark.parametrize("dtype", sorted(BITS))
@pytest.mark.parametrize("values, expected", SPECIAL)
def test_special_values(values, expected, dtype):
    block = np.zeros((1, 16), np.float32)
    block[0, : len(values)] = values
    rounded = round_to_blocks(block, dtype)[0, : len(values)]
    assert np.array_equal(rounded, np.array(expected, np.float32), equal_nan=True)
    assert not np.signbit(rounded[rounded == 0]).any()


TIES = [(64.5, 64.0), (65.5, 66.0), (65.25, 65.0), (127.75, 127.0), (-65.5, -66.0)]


@pytest.mark.parametrize("value, expected", TIES)
def test_ties_go_to_even_and_the_top_saturates(value, expected):
    block = np.zeros((1, 16), np.float32)
    block[0, 0], block[0, 1] = 64.0, value
    assert round_to_blocks(block, "bfp8_b")[0, 1] == expected


@pytest.mark.parametrize("dtype", sorted(BITS))
def test_packing_is_that_of_the_ttnn_library(dtype):
    """The stored tiles are compared byte for byte with the result of ttnn 0.81.1 on the host.

    They have normal, huge, zero, denormal, infinite and NaN elements, ties, and random bits.
    tests/codegen/test_library_packing.py calls the library itself.
    """
    with np.load(Path(__file__).parents[1] / "data" / "runtime" / "block_float.npz") as stored:
        for tile, packed in zip(stored["tiles"], stored[dtype], strict=True):
            assert pack_tile(tile, dtype) == packed.tobytes()


@pytest.mark.parametrize(
    ("op", "fields", "move"),
    [
        ("ReshapeOp", {}, lambda x: x.reshape(32, 24)),
        ("PermuteOp", {"permutation": [1, 0]}, lambda x: x.T),
    ],
)
def test_moved_numbers_share_exponents_with_their_new_neighbours(op, fields, move) -> None:
    """A chip packs them again. In the old blocks, numbers have more or fewer bits than in the new ones."""
    x = torch.randn(24, 32, generator=torch.Generator().manual_seed(0))
    moved = move(x)
    maker = Maker()
    small = maker.op("TypecastOp", **{"in": maker.input(x.shape)}, out=maker.tensor(x.shape, "BFP_BFloat8"))
    y = maker.op(op, **{"in": small}, **fields, out=maker.tensor(moved.shape, "BFP_BFloat8"))
    (got,) = Executable(Binary(maker.binary(y)))([x])
    once = torch.from_numpy(round_to_blocks(x.bfloat16().float().numpy(), "bfp8_b"))
    twice = torch.from_numpy(round_to_blocks(move(once).contiguous().numpy(), "bfp8_b"))
    assert torch.equal(got.float(), twice) and not torch.equal(twice, move(once))


def test_moves_to_another_place_keep_block_floats() -> None:
    x = torch.randn(24, 32, generator=torch.Generator().manual_seed(0))
    maker = Maker()
    small = maker.op("TypecastOp", **{"in": maker.input(x.shape)}, out=maker.tensor(x.shape, "BFP_BFloat8"))
    moved = maker.op("ToMemoryConfigOp", in0=small, out=maker.tensor(x.shape, "BFP_BFloat8", "L1"))
    y = maker.op("TypecastOp", **{"in": moved}, out=maker.tensor(x.shape))
    (got,) = Executable(Binary(maker.binary(y)))([x])
    assert torch.equal(got, torch.from_numpy(round_to_blocks(x.bfloat16().float().numpy(), "bfp8_b")))

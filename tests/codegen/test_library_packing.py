"""Our packing of block floats agrees with that of Tenstorrent's library, byte for byte."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tt_torch.runtime.block_float import pack_tile, unpack_tile

LIBRARY = {"bfp8_b": "ttnn.bfloat8_b", "bfp4_b": "ttnn.bfloat4_b"}
special = st.sampled_from([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-45, 3.4e38])
elements = st.one_of(st.floats(width=32), special)


@pytest.mark.needs_ttnn
@pytest.mark.parametrize("dtype", LIBRARY)
def test_packing_equals_the_librarys(dtype, checkers):
    ask = checkers().ask

    @settings(suppress_health_check=[HealthCheck.too_slow])
    @given(arrays(np.float32, (32, 32), elements=elements))
    def equal(tile):
        packed, values = ask("pack", {"values": tile.tobytes(), "dtype": LIBRARY[dtype]})
        assert pack_tile(tile, dtype) == packed
        assert unpack_tile(packed, dtype).tobytes() == values

    equal()

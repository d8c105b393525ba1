"""`benchmarks decode_cost`: a token of a model whose weights are on `meta` costs the reading of its weights."""

from __future__ import annotations

import pytest

from benchmarks.decode_cost import cost
from tt_torch.profiling.scaling import Step

SIZES = {"hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 4}
BFP8_BYTES, BFP4_BYTES = 1088 / 1024, 576 / 1024  # per element


def test_a_token_reads_each_weight_once() -> None:
    narrow, wide = (Step(1, 64, vocab_size=2048, intermediate_size=size, **SIZES) for size in (4096, 8192))
    assert all(p.is_meta for p in wide.net.parameters())
    small, large = cost(narrow, "wormhole_b0", "bfp8"), cost(wide, "wormhole_b0", "bfp8")
    more = 3 * 1024 * 4096 * BFP8_BYTES  # three products are wider by 4096
    assert large["bytes"] - small["bytes"] == pytest.approx(more, rel=0.2)
    assert large["ops"] == small["ops"]
    assert 0 < large["products"] < large["seconds"]
    assert cost(narrow, "blackhole", "bfp8")["seconds"] < small["seconds"]
    mixed = cost(wide, "wormhole_b0", "bfp4 gate, up")
    less = 2 * 1024 * 8192 * (BFP8_BYTES - BFP4_BYTES)
    assert large["bytes"] - mixed["bytes"] == pytest.approx(less, rel=0.2)

"""The fields that an op of TTNN writes in its wire table, and the parts of a sharded tensor."""

from __future__ import annotations

from collections import defaultdict

import pytest

from tt_torch.mlir import ods
from tt_torch.mlir.ttnn import dialect
from tt_torch.mlir.ttnn.layout import Layout, memory_config

# Fields that are derived for every op that has them, and types of unions: the member of a union says its type.
ALWAYS = {
    "memory_config",
    "memcfg",
    "outs",
    "params",
    "params_type",
    "matmul_program_config_type",
    "fill_value_type",
    "rhs_type",
    "extra_params_type",
}
# The only fields that ops leave out, so that the library takes its default.
LEFT_OUT = {
    "activation": "matmul",
    "applied_shard_scheme": "avg_pool2d max_pool2d max_pool2d_with_indices",
    "attention_sink": "paged_scaled_dot_product_attention_decode scaled_dot_product_attention",
    "bias": "rms_norm",
    "ceil_mode": "avg_pool2d max_pool2d max_pool2d_with_indices",
    "conv2d_config": "conv_transpose2d",
    "conv2d_slice_config": "conv2d conv_transpose2d prepare_conv2d_bias prepare_conv2d_weights",
    "conv3d_config": "conv3d",
    "device": "constant",
    "layout": "constant",
    "num_links": "all_gather all_reduce distributed_rms_norm reduce_scatter",
    "output_dtype": "prepare_conv2d_bias prepare_conv2d_weights",
    "pad_value": "permute",
    "program_config": "paged_scaled_dot_product_attention_decode",
    "residual": "distributed_rms_norm",
    "sliding_window_size": "paged_scaled_dot_product_attention_decode scaled_dot_product_attention",
    "sub_device_id": "all_gather all_reduce distributed_rms_norm reduce_scatter",
    "token_index": "rotary_embedding",
    "topology": "all_gather all_reduce distributed_rms_norm reduce_scatter",
}


def test_ops_write_all_other_fields() -> None:
    left = defaultdict(set)
    for name, op in ods.OPS.items():
        if name.startswith("ttnn."):
            facts = op.facts
            written = {operand.name for operand in op.operands} | {str(result) for result in op.results}
            written |= {*op.attrs, *facts["fixed"], *facts.get("derived", ()), facts.get("vector")}
            for field in dialect.wire_fields(facts["table"]).keys() - written - ALWAYS:
                left[field].add(name.removeprefix("ttnn."))
    assert left == {field: set(names.split()) for field, names in LEFT_OUT.items()}


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 15, 16, 17, 32, 63, 64])
def test_each_part_of_the_rows_has_a_core(count: int) -> None:
    layout = Layout("BFloat16", buffer="L1", memory_layout="HeightSharded", grid=(count, 1))
    shards = memory_config(layout, [1, count, 20, 40], 8)["shard_spec"]
    ends = [(r["start_coord"], r["end_coord"]) for r in shards["core_range_set"]["core_ranges"]]
    cores = [
        (x, y)
        for first, last in ends
        for y in range(first["y"], last["y"] + 1)
        for x in range(first["x"], last["x"] + 1)
    ]
    assert len(set(cores)) == len(cores) == count
    assert cores == sorted(cores, key=lambda core: core[::-1]) and max(x for x, _ in cores) == min(count, 8) - 1
    assert shards["shape"] == [32, 64]

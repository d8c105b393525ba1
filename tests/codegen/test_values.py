"""Values of a binary as Python text."""

from __future__ import annotations

import math

import pytest

from tt_torch.codegen.calls import rows, snake
from tt_torch.codegen.values import NAMES, OF_TENSORS, VALUES, Call, Text, call, names, render
from tt_torch.errors import BinaryFormatError, UnsupportedBinaryError
from tt_torch.wire import schema

CORES = {"core_ranges": [{"start_coord": {"x": 0, "y": 1}, "end_coord": {"x": 7, "y": 2}}]}
IN_CORES = "ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 1), ttnn.CoreCoord(7, 2))])"
SHARDS = {"core_range_set": CORES, "shape": [32, 64], "orientation": "ColMajor"}


def placed(layout, buffer, **fields):
    return {"tensor_memory_layout": layout, "buffer_type": buffer, **fields}


def test_the_package_has_the_names_of_the_wire_in_its_own_style():
    members = {
        kind: schema.load().enum(f"tt.target.{kind}").values for kind in ("DataType", "TensorLayout", "BufferType")
    }
    sharding = {
        kind: schema.load().enum(f"tt.target.ttnn.{kind}").values for kind in ("TensorMemoryLayout", "ShardOrientation")
    }
    styled = {
        name: f"ttnn.{name.removeprefix('BFP_').lower()}{'_b' * name.startswith('BFP')}" for name in members["DataType"]
    }
    styled |= {name: f"ttnn.Topology.{name}" for name in schema.load().enum("tt.target.Topology").values}
    styled |= {name: f"ttnn.{snake(name).upper()}_LAYOUT" for name in members["TensorLayout"]}
    styled |= {name: f"ttnn.BufferType.{snake(name).upper()}" for name in members["BufferType"]}
    styled |= {name: f"ttnn.TensorMemoryLayout.{snake(name).upper()}" for name in sharding["TensorMemoryLayout"]}
    styled |= {f"{name}Shards": f"ttnn.ShardOrientation.{snake(name).upper()}" for name in sharding["ShardOrientation"]}
    assert NAMES.items() <= styled.items()
    assert styled.keys() - NAMES.keys() == {
        "Float16", "Float64", "Int64", "UInt64", "Int16", "Int8", "Bool", "BFP_Float8", "BFP_Float4", "BFP_Float2",
        "BFP_BFloat2", "Invalid", "SystemMemory", "Trace", "NDSharded",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (-3, "-3"),
        (0.5, "0.5"),
        (math.inf, 'float("inf")'),
        (-math.inf, 'float("-inf")'),
        (math.nan, 'float("nan")'),
        ("Tile", "ttnn.TILE_LAYOUT"),
        ([1, 2.0], "[1, 2.0]"),
        ((), "[]"),
        (Text("as_it_is"), "as_it_is"),
        ([Text("a"), Text("b")], "[a, b]"),
        (call("f", "x", a=1, b=None, c="L1"), "f(x, a=1, c=ttnn.BufferType.L1)"),
        (placed("Interleaved", "DRAM"), "ttnn.DRAM_MEMORY_CONFIG"),
        (placed("Interleaved", "L1"), "ttnn.L1_MEMORY_CONFIG"),
        (
            placed("Interleaved", "L1Small"),
            "ttnn.MemoryConfig(ttnn.TensorMemoryLayout.INTERLEAVED, ttnn.BufferType.L1_SMALL)",
        ),
        (
            placed("BlockSharded", "L1"),
            "ttnn.MemoryConfig(ttnn.TensorMemoryLayout.BLOCK_SHARDED, ttnn.BufferType.L1)",
        ),
        (
            placed("HeightSharded", "L1", shard_spec=SHARDS),
            "ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, "
            f"ttnn.ShardSpec({IN_CORES}, [32, 64], ttnn.ShardOrientation.COL_MAJOR))",
        ),
        (
            placed("Interleaved", "DRAM", shard_spec=SHARDS | {"orientation": "RowMajor"}),
            "ttnn.MemoryConfig(ttnn.TensorMemoryLayout.INTERLEAVED, ttnn.BufferType.DRAM, "
            f"ttnn.ShardSpec({IN_CORES}, [32, 64], ttnn.ShardOrientation.ROW_MAJOR))",
        ),
    ],
)
def test_rendered(value, text):
    assert str(render(value)) == text


def test_what_cannot_be_rendered():
    with pytest.raises(UnsupportedBinaryError, match="Float64"):
        render("Float64")
    for value in ({"a": 1}, b"bytes", object()):
        with pytest.raises(BinaryFormatError, match="no argument of ttnn"):
            render(value)


@pytest.mark.parametrize(
    ("convert", "value", "result"),
    [
        ("text", "a\"'\n", "'a\"\\'\\n'"),
        ("number", {"FP": {"value": 0.5}}, 0.5),
        ("number", {"I32": {"value": 7}}, 7),
        ("whole", 3.0, 3),
        ("whole", -0.5, -0.5),
        ("whole", math.inf, math.inf),
        ("pool_padding", [1, 2], [1, 2]),
        ("pool_padding", (1, 2, 3, 4), [1, 3, 2, 4]),
        ("pairs", [1, 2, 0, 3], "[(1, 2), (0, 3)]"),
        ("pairs", [], "[]"),
        ("reduce", "Invalid", None),
        ("reduce", "Sum", '"add"'),
        ("reduce", "Prod", '"multiply"'),
        ("reduce", "Max", '"amax"'),
        ("reduce", "Min", '"amin"'),
        ("scale", {"UniformScale2D": {"scale": 2}}, 2),
        ("scale", {"NonUniformScale2D": {"scale_factor": [2, 3]}}, [2, 3]),
        ("compute", {}, "ttnn.WormholeComputeKernelConfig()"),
        (
            "compute",
            {"math_fidelity": "HiFi4", "fp32_dest_acc_en": True},
            "ttnn.WormholeComputeKernelConfig(math_fidelity=ttnn.MathFidelity.HiFi4, fp32_dest_acc_en=True)",
        ),
        (
            "program_config",
            {
                "MatmulMultiCoreReuseMultiCast1DProgramConfig": {
                    "compute_with_storage_grid_size": {"x": 8, "y": 7},
                    "per_core_m": 1,
                    "fused_activation": {"op_type": "Gelu"},
                    "hop_cores": {"core_ranges": []},
                }
            },
            "ttnn.MatmulMultiCoreReuseMultiCast1DProgramConfig(compute_with_storage_grid_size=ttnn.CoreCoord(8, 7), "
            "per_core_M=1, fused_activation=ttnn.UnaryWithParam(ttnn.UnaryOpType.GELU))",
        ),
        (
            "program_config",
            {
                "MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig": {
                    "in0_block_w": 8,
                    "per_core_m": 1,
                    "per_core_n": 2,
                    "fused_activation": {"op_type": "Silu", "params": []},
                }
            },
            "ttnn.MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(in0_block_w=8, per_core_M=1, per_core_N=2, "
            "fused_activation=ttnn.UnaryWithParam(ttnn.UnaryOpType.SILU))",
        ),
        (
            "program_config",
            {"MatmulMultiCoreReuseMultiCastProgramConfig": {"per_core_n": 2}},
            "ttnn.MatmulMultiCoreReuseMultiCastProgramConfig(per_core_N=2, fused_activation=None)",
        ),
        (
            "program_config",
            {"MatmulMultiCoreReuseProgramConfig": {"in0_block_w": 4, "hop_cores": CORES}},
            f"ttnn.MatmulMultiCoreReuseProgramConfig(in0_block_w=4, hop_cores={IN_CORES})",
        ),
        ("conv_config", {"weights_dtype": "BFloat16"}, "ttnn.Conv2dConfig(weights_dtype=ttnn.bfloat16)"),
        (
            "conv_config",
            {"core_grid": CORES, "activation": {"op_type": "Relu6", "params": [0.5]}, "act_block_h_override": 0},
            "ttnn.Conv2dConfig(act_block_h_override=0, "
            f"activation=ttnn.UnaryWithParam(ttnn.UnaryOpType.RELU6, 0.5), core_grid={IN_CORES})",
        ),
        *(
            (
                "slice_config",
                {"slice_type": kind, "num_slices": 3},
                f"ttnn.Op2DSliceConfig(slice_type=ttnn.Op2DSliceConfig.SliceTypeEnum.{name}, num_slices=3)",
            )
            for kind, name in [("DramHeight", "DRAMSliceHeight"), ("DramWidth", "DRAMSliceWidth"), ("L1Full", "L1Full")]
        ),
    ],
)
def test_converted(convert, value, result):
    found = VALUES[convert](value)
    assert (str(found) if isinstance(result, str) else found) == result
    assert isinstance(found, int) == isinstance(result, int)


def test_what_cannot_be_converted():
    for convert, value in [("number", {"other": {"value": 1}}), ("pool_padding", [1, 2, 3]), ("pairs", [1, 2, 3])]:
        with pytest.raises(BinaryFormatError):
            VALUES[convert](value)
    with pytest.raises(UnsupportedBinaryError, match="Last"):
        VALUES["reduce"]("Last")


def test_the_conversions_are_those_that_rows_name():
    assert {argument.convert for row in rows().values() for argument in row.arguments} == {"", *VALUES, *OF_TENSORS}


def test_a_call_that_does_not_fit_into_a_line():
    fits = Call("f", (("", "a" * 103), ("k", "b")))
    assert fits.lines(4, "x = ", ",") == [f"    x = f({'a' * 103}, k=b),"]
    assert len(fits.lines(4, "x = ", ",")[0]) == 120
    assert fits.lines(4, "xy = ", ",") == ["    xy = f(", f"        {'a' * 103}, k=b", "    ),"]


def test_arguments_that_do_not_fit_into_a_line():
    inner, a, b = names(["c"] * 36), "a" * 90, "b" * 30
    assert Call("f", (("", a), ("k", b), ("l", inner))).lines(4, after=";") == [
        "    f(", f"        {a},", f"        k={b},", f"        l=[{', '.join(['c'] * 36)}],", "    );",
    ]  # fmt: skip
    assert Call("f", (("l", names([a, b])),)).lines(0) == [
        "f(",
        "    l=[",
        f"        {a},",
        f"        {b},",
        "    ],",
        ")",
    ]

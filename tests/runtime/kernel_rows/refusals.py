"""Programs that kernels refuse. Each is a valid program with one thing wrong, from other files' rows or from this file.

A refusal has a message and the wrong fields. `None` leaves a field out. ACCEPTED has programs at the limits.
"""

from kernel_rows import attention, images, movement, others, products, training
from kernel_rows.fields import HUGE, STEP, Fields, Result, ints, x, y
from kernel_rows.refused_attention import ATTENTION
from kernel_rows.refused_collectives import COLLECTIVES
from kernel_rows.refused_collectives import PROGRAMS as ON_A_MESH
from kernel_rows.refused_images import CONVOLUTIONS, IMAGES
from kernel_rows.refused_training import SAMPLING, TRAINING


def of_row(row):
    """The fields of a row of the kernel tests."""
    results = {name: Result(*r) if str in map(type, r) else Result(r) for name, r in row.results.items()}
    return row.operands | results | row.attributes


ROWS = [*attention.ROWS, *images.ROWS, *movement.ROWS, *others.ROWS, *products.ROWS, *training.ROWS,
        *training.OF_DEFAULT]  # fmt: skip
WINDOW = {"kernel_size": [3, 3], "stride": [1, 1], "padding": [1, 1], "dilation": [1, 1]}
PREPARED = products.IMAGE | WINDOW | {"groups": 1, "input_dtype": "Float32", "out": y(1, 1, 72, 6)}
PER_AXIS = {"scale": {"PerAxisScale": {"scale": x(10)}}, "zero_point": {"PerTensorZeroPoint": {"zero_point": 1}}}
SMALL = {"in": x(4, 10), "out": y(4, 10)}
PROGRAMS: dict[str, Fields] = {row.op: of_row(row) for row in reversed(ROWS)} | ON_A_MESH | {
    "SamplingOp": SAMPLING,
    "ArangeOp": {"start": 0.0, "end": 4.0, "step": 1.0, "out": y(4)},
    "BitcastConvertOp": {"in": x(4, 8), "dtype": "Int32", "out": y(4, 8, dtype="Int32")},
    "ConcatOp": {"inputs": [x(2, 3, 4), x(2, 5, 4)], "dim": 1, "out": y(2, 8, 4)},
    "ConstantOp": {"input": bytes(24), "input_dtype": "Float32", "out": y(2, 3)},
    "DropoutOp": SMALL | {"prob": 0.5, "scale": 2.0, "seed": 1},
    "EltwiseBinaryOp": {"type": "Add", "lhs": x(5, 1), "rhs": x(8), "out": y(5, 8)},
    "EltwiseBinaryCompositeScalarOp": {"type": "PowScalar", "lhs": x(5), "rhs": {"FP": {"value": 2.0}}, "out": y(5)},
    "EltwiseQuantizationOp": {"type": "Dequantize", "in": ints(4, 10), "axis": 1, "out": y(4, 10),
                              "params": {"QuantizeDequantizeOpParams": PER_AXIS}},
    "EltwiseUnaryOp": SMALL | {"type": "Exp"},
    "EltwiseUnaryCompositeOp": SMALL | {"type": "ClampTensor",
                                        "params": {"ClampTensorOpParams": {"min": x(10), "max": x(4, 1)}}},
    "DeallocateOp": {"in": x(5, 8)},
    "GetDeviceOp": {"mesh": {"x": 1, "y": 1}},
    "PrepareConv2dBiasOp": PREPARED | {"bias_tensor": x(1, 1, 1, 6)},
    "PrepareConv2dWeightsOp": PREPARED | {"weight_tensor": x(6, 8, 3, 3)},
    "PrepareConvTranspose2dWeightsOp": PREPARED | {"weight_tensor": x(8, 6, 3, 3)},
    "SliceOp": {"type": "SliceDynamicOp", "in": x(5, 8), "step": [2, 1], "out": y(2, 6),
                "params": {"SliceDynamicOpParams": {"begins": ints(2), "ends": ints(2)}}},
    "SortOp": {"in": x(5, 8), "dim": 1, "outputs": [y(5, 8), y(5, 8, dtype="UInt16")]},
    "ReductionOp": {"type": "Sum", "in": x(5, 8), "dim_arg": [1], "keep_dim": True, "out": y(5, 1)},
    "ToMemoryConfigOp": {"in0": x(5, 8), "out": y(5, 8)},
    "RowsGatherOp": {"in": x(2, 20, 7), "index": ints(2, 2, 4), "sizes": [4, 5], "windows": [2, 3], "column": False,
                     "out": y(2, 24, 7)},
}  # fmt: skip
# Ops with fields that only the inferred schema has.
OF_INFERRED = {"Pool2dOp", "RowsGatherOp"}

BLOCKS = "MatmulMultiCoreReuseMultiCastProgramConfig"
INNER = "the inner dimensions of the operands differ"
ONE_PER_DIMENSION = "begins and ends must have one number per dimension"
REPEATED = "repeat_dims is out of range, or the result's shape is not that of the repeated operand"
REPEATS = "repeats is out of range, or the result's shape is not that of the repeated operand"
JOINED = "the operands differ in a dimension that is not joined"


def bounds(**wrong):
    params = {"begins": ints(2), "ends": ints(2)} | wrong
    return {"params": {"SliceDynamicOpParams": {name: value for name, value in params.items() if value is not None}}}


def fixed(begins, ends):
    return {"type": "SliceStaticOp", "params": {"SliceStaticOpParams": {"begins": begins, "ends": ends}}}


STARTS = "index must have a start per batch, dimension and block"
MOVEMENT = {
    "MatmulOp": [
        (INNER, {"b": x(7, 5)}), (INNER, {"transpose_a": True}), (INNER, {"transpose_b": True}),
        ("the result has another number of elements than the product", {"out": y(6, 6)}),
        ("the result has another width than the product", {"out": y(5, 6)}),
        ("the fused activation cosine has no kernel", {"activation": "cosine"}),
        (
            "both the op and its program configuration have an activation",
            {"activation": "relu", "matmul_program_config": {BLOCKS: {"fused_activation": {"op_type": "Relu"}}}},
        ),
    ],
    "LinearOp": [("the bias cannot be broadcast to the result", {"bias": x(2, 6, 5)})],
    "ReshapeOp": [("operand and result have different numbers of elements", {"out": y(6, 11)})],
    "PermuteOp": [
        ("the ranks of operand, result and permutation differ", {"permutation": [0, 1]}),
        ("the ranks of operand, result and permutation differ", {"out": y(3, 4, 5, 1)}),
        ("the permutation repeats a dimension", {"permutation": [0, 1, 1], "out": y(3, 4, 4)}),
        ("the result's shape is not that of the permuted operand", {"permutation": [1, 0, 2]}),
        *((f"dimension {d} is out of range for a tensor of rank 3", {"permutation": [d, 1, 2]}) for d in (3, -4)),
    ],
    "ConcatOp": [
        ("there are no operands to concatenate", {"inputs": []}),
        ("the operands are scalars, or the result has another rank", {"inputs": [x()], "out": y(), "dim": 0}),
        ("the operands are scalars, or the result has another rank", {"out": y(16, 4)}),
        ("the ranks of the operands differ", {"inputs": [x(2, 3, 4), x(5, 4)]}),
        (JOINED, {"inputs": [x(2, 3, 4), x(1, 5, 4)]}), (JOINED, {"inputs": [x(2, 3, 4), x(2, 5, 5)]}),
        ("the result's shape is not that of the joined operands", {"out": y(2, 9, 4)}),
    ],
    "SliceOp": [
        ("params are missing", {"params": None}),
        ("step must have one number per dimension", {"step": [1]}),
        *(("a step is out of range", {"step": [1, n]}) for n in (0, STEP, -STEP)),
        *(("begins or ends are missing", bounds(**{name: None})) for name in ("begins", "ends")),
        *((ONE_PER_DIMENSION, bounds(**{name: ints(3)})) for name in ("begins", "ends")),
        (ONE_PER_DIMENSION, fixed([0], [4, 6])), (ONE_PER_DIMENSION, fixed([0, 0], [4])),
    ],
    "PadOp": [
        ("padding must have two numbers per dimension", {"padding": [1, 1]}),
        *(("padding is out of range", {"padding": [n if i == side else 0 for i in range(4)], "out": y(5 + n, 8)})
          for side in range(4) for n in (STEP + 1,)),
        *(("the result's shape is not that of the padded operand", {"out": y(*shape)})
          for shape in [(8, 8), (7, 9), (8,)]),
    ],
    "RepeatOp": [
        *(("the ranks of operand, result and repeat_dims differ", wrong)
          for wrong in ({"repeat_dims": [2]}, {"out": y(240)})),
        *((REPEATED, wrong) for wrong in ({"repeat_dims": [-1, 3]}, {"in": x(5, 0), "repeat_dims": [2, STEP + 1]},
                                          {"out": y(10, 25)})),
    ],
    "RepeatInterleaveOp": [
        (REPEATS, {"input": x(), "dim": 0, "out": y()}), (REPEATS, {"out": y(5, 24, 1)}), (REPEATS, {"out": y(5, 25)}),
        (REPEATS, {"repeats": HUGE + 1, "out": y(5, 8 * (HUGE + 1))}),
    ],
    "TypecastOp": [("operand and result have different shapes", {"out": y(8, 5)})],
    "ToMemoryConfigOp": [("operand in0 is missing", {"in0": None})],
    "AssignOp": [("operand and result have different shapes", {"output": y(8, 5)})],
    "CopyOp": [("the operands have different shapes", {"src": x(8, 5)})],
    "BitcastConvertOp": [("the elements of operand and result differ in width", {"out": y(4, 8, dtype="UInt16")})],
    "GatherOp": [("a scalar has no dimension to index", {"input": x(), "dim": 0})],
    "ScatterOp": [("a scalar has no dimension to index", {"input": x(), "dim": 0})],
    "RowsGatherOp": [
        *((STARTS, wrong) for wrong in ({"in": x()}, {"in": x(3, 20, 7)}, {"index": ints(2, 4)}, {"sizes": []},
                                        {"sizes": [20], "windows": [6]}, {"windows": [2]})),
        *(("a block is empty or larger than the grid", {"windows": [2, size]}) for size in (0, 6)),
        *(("the sizes are not those of the input", wrong) for wrong in ({"sizes": [4, 6]}, {"column": True})),
        *(("there is not a row per index and cell of a block", {"out": y(*shape)}) for shape in [(2, 4, 7), (2, 24)]),
        ("the op needs much more memory than its tensors have",
         {"in": x(1, 1 << 12, 0), "index": ints(1, 1, 1 << 12), "sizes": [1 << 12], "windows": [1 << 12],
          "out": y(1, 0)}),
    ],
    "EmbeddingOp": [
        ("the weight must have at least one dimension", {"weight": x()}),
        ("the result does not have a row per index", {"out": y(2, 2, 8)}),
    ],
    "EmbeddingBackwardOp": [
        ("the weight must have at least two dimensions", {"weight": x(8)}),
        *(("the result does not have a row per row of the table", wrong)
          for wrong in ({"in_grad": x()}, {"out": y(1, 1, 16, 9)})),
    ],
    "ReductionOp": [(f"dimension {d} is out of range for a tensor of rank 2", {"dim_arg": [d]}) for d in (2, -3)],
    "SortOp": [("the op must have two results", {"outputs": [y(5, 8)]})],
}  # fmt: skip

BOUNDS = "both bounds of the clamp are missing"
VALUES = "a quantization parameter does not have a value per element of the axis"
MISSING = "a quantization parameter is missing"
ELEMENTS = {
    "ArangeOp": [("the result must have one dimension", {"out": y(2, 2)})],
    "FullOp": [("fill_value is missing", {"fill_value": None})],
    "ConstantOp": [
        *(("the size of the constant's bytes is not that of its shape and type", wrong)
          for wrong in ({"out": y(2, 4)}, {"input_dtype": "BFloat16"}, {"input": b"", "input_dtype": "Float64"})),
    ],
    "DropoutOp": [("prob must be between 0 and 1", {"prob": prob}) for prob in (-0.01, 1.01)],
    "EltwiseUnaryOp": [("operand and result have different shapes", {"out": y(10, 4)})],
    "EltwiseUnaryCompositeOp": [
        *((BOUNDS, {"type": "ClampScalar", "params": params}) for params in (None, {"ClampScalarOpParams": {}})),
        *(("a bound of the clamp is missing", {"params": params})
          for params in (None, *({"ClampTensorOpParams": {name: x(10)}} for name in ("min", "max")))),
        ("the result has another shape than the broadcast operands",
         {"params": {"ClampTensorOpParams": {"min": x(2, 4, 10), "max": x(10)}}}),
    ],
    "EltwiseBinaryOp": [("the result has another shape than the broadcast operands", {"out": y(8, 5)})],
    "EltwiseBinaryCompositeScalarOp": [("rhs is missing", {"rhs": None})],
    "EltwiseQuantizationOp": [
        ("params are missing", {"params": None}),
        *((MISSING, {"params": {"QuantizeDequantizeOpParams": {name: PER_AXIS[name]}}}) for name in PER_AXIS),
        (VALUES, {"axis": 0}), (VALUES, {"axis": 0, "in": ints(), "out": y()}),
        ("dimension 2 is out of range for a tensor of rank 2", {"axis": 2}),
    ],
    "DeallocateOp": [("operand in is missing", {"in": None})],
    "GetDeviceOp": [
        ("the op's mesh is another one than that of the program", {"mesh": mesh})
        for mesh in ({"x": 1, "y": 2}, {"x": 2, "y": 1})
    ],
}  # fmt: skip

REFUSED = ATTENTION | COLLECTIVES | CONVOLUTIONS | IMAGES | MOVEMENT | ELEMENTS | TRAINING

LAST = HUGE - 1
ACCEPTED = [
    ("ScaledDotProductAttentionOp", {"value": x(2, 4, 9, 24), "out": y(2, 4, 9, 24)}),
    *(("ScaledDotProductAttentionOp", {"attention_mask": x(*shape)}) for shape in [(1, 1, 1, 1), (2, 4, 9, 9)]),
    ("ScaledDotProductAttentionDecodeOp", {"cur_pos_tensor": ints(1)}),
    ("NLPConcatHeadsDecodeOp", {"num_heads": 32, "out": y(1, 1, 3, 512)}),
    ("RotaryEmbeddingOp", {"input": x(2, 4, 9, 16), "out": y(2, 4, 9, 16)}),
    ("RotaryEmbeddingOp", {"input": x(2, 4, 1, 16), "token_index": 8, "out": y(2, 4, 1, 16)}),
    ("Conv2dOp", {"padding": [1024, 1024, 1, 1], "out": y(1, 1, 2 * 2053 * 6, 6)}),
    ("Conv2dOp", {"stride": [LAST, LAST], "out": y(1, 1, 2, 6)}),
    ("Conv2dOp", {"dilation": [LAST, LAST], "kernel_size": [1, 1], "weight": x(6, 8, 1, 1), "padding": [0, 0]}),
    ("Conv1dOp", {"padding": [1024, 0], "out": y(2, 1031, 6)}),
    ("Conv1dOp", {"stride": LAST, "out": y(2, 1, 6)}),
    ("Conv3dOp", {"padding": [0, 1024, 0], "out": y(2, 3, 2052, 4, 6)}),
    ("PrepareConv3dWeightsOp", {"alignment": 4095, "out": y(4095 * 12, 6)}),
    ("PrepareConv3dWeightsOp", {"c_in_block": 3}),
    ("Pool2dOp", {"stride": [LAST, LAST], "out": y(1, 1, 2, 8)}),
    ("Pool2dOp", {"kernel_size": [7, 6], "out": y(1, 1, 2, 8)}),
    ("SliceOp", {"step": [STEP - 1, 1 - STEP], "out": y(1, 0)}),
    ("RepeatOp", {"in": x(0, 8), "repeat_dims": [STEP, 0], "out": y(0, 0)}),
    ("PadOp", {"in": x(0, 0), "padding": [STEP, 0, 0, 0], "out": y(STEP, 0)}),
    ("RepeatInterleaveOp", {"input": x(1, 1), "repeats": HUGE, "dim": 0, "out": y(HUGE, 1)}),
    *(("DropoutOp", {"prob": prob}) for prob in (0.0, 1.0)),
    *(("PermuteOp", {"permutation": order, "out": y(5, 3, 4)}) for order in ([2, 0, 1], [-1, -3, -2])),
    ("GetDeviceOp", {"mesh": None}),
]  # fmt: skip

"""Programs that kernels refuse: those of the rows in the other files, or from here, with one thing wrong.

A refusal is the message, and the fields that are wrong. `None` leaves a field out. ACCEPTED has programs at the limits.
"""

from dataclasses import dataclass

import torch
from kernel_rows import attention, images, movement, others, products

Fields = dict[str, object]  # tensors are operands, `Result`s are results, all other values are attributes


@dataclass(frozen=True)
class Result:
    shape: tuple[int, ...]
    dtype: str = "Float32"


def x(*shape, dtype=torch.float32):
    """An operand. Its values are never read."""
    return torch.empty(shape, dtype=dtype, device="meta")


def ints(*shape):
    return x(*shape, dtype=torch.int32)


def y(*shape, dtype="Float32"):
    return Result(shape, dtype)


def of_row(row):
    """The fields of a row of the kernel tests."""
    results = {name: Result(*r) if str in map(type, r) else Result(r) for name, r in row.results.items()}
    return row.operands | results | row.attributes


ROWS = [*attention.ROWS, *images.ROWS, *movement.ROWS, *others.ROWS, *products.ROWS]
WINDOW = {"kernel_size": [3, 3], "stride": [1, 1], "padding": [1, 1], "dilation": [1, 1]}
PREPARED = products.IMAGE | WINDOW | {"groups": 1, "input_dtype": "Float32", "out": y(1, 1, 72, 6)}
PER_AXIS = {"scale": {"PerAxisScale": {"scale": x(10)}}, "zero_point": {"PerTensorZeroPoint": {"zero_point": 1}}}
SMALL = {"in": x(4, 10), "out": y(4, 10)}
PROGRAMS: dict[str, Fields] = {row.op: of_row(row) for row in reversed(ROWS)} | {
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

FOUR = "query, key and value must have four dimensions"
HEADS = "the number of query heads is not a multiple of the number of key heads"
UNLIKE, KEYS = "key and value differ in batch, heads or length", "query and key differ in batch or depth"
BROADCAST = "the mask cannot be broadcast to the scores"
WIDTH = "the width of the input is not a multiple of the number of heads"
CACHES = "the input needs an even width, and both caches the same shape of at least two dimensions"
RANK = "the input must have four dimensions, and num_heads of its rows"
ATTENTION = {
    "ScaledDotProductAttentionOp": [
        ("operand query is missing", {"query": None}),
        ("result out is missing", {"out": None}),
        ("the operands of an attention must have four dimensions", {"query": x(4, 9, 16)}),
        ("the operands of an attention must have four dimensions", {"attention_mask": x(9, 9)}),
        (FOUR, {"key": x(2, 4, 9)}), (FOUR, {"value": x(4, 9, 16)}),
        (HEADS, {"key": x(2, 3, 9, 16)}), (HEADS, {"key": x(2, 0, 9, 16), "value": x(2, 0, 9, 16)}),
        (KEYS, {"key": x(1, 4, 9, 16)}), (KEYS, {"key": x(2, 4, 9, 8)}),
        *((UNLIKE, {"value": x(*shape)}) for shape in [(1, 4, 9, 16), (2, 2, 9, 16), (2, 4, 8, 16)]),
        *((BROADCAST, {"attention_mask": x(*shape)})
          for shape in [(3, 4, 9, 9), (2, 3, 9, 9), (2, 4, 2, 9), (2, 4, 9, 8)]),
        ("the sink must have one value per head", {"attention_sink": x(1, 2, 1, 1)}),
        ("an attention mask and is_causal exclude each other", {"is_causal": True, "attention_mask": x(1, 1, 9, 9)}),
        ("a sliding window without is_causal has no kernel", {"sliding_window_size": 3}),
    ],
    "FlashMlaPrefillOp": [("head_dim_v is larger than the depth of the keys", {"head_dim_v": 17})],
    "ChunkedScaledDotProductAttentionOp": [
        ("there must be one chunk_start_idx", {"chunk_start_idx": ints(2)}),
        ("the op needs much more memory than its tensors have", {"page_table": ints(3, 1 << 21)}),
        ("there is no page", {"key": x(0, 2, 4, 16), "value": x(0, 2, 4, 16)}), (KEYS, {"page_table": ints(2, 2)}),
    ],
    "PagedScaledDotProductAttentionDecodeOp": [
        ("pages need cur_pos_tensor or a mask", {"cur_pos_tensor": None}),
        ("the op needs much more memory than its tensors have", {"page_table": ints(3, 1 << 21)}),
        ("there is no page", {"key": x(0, 2, 4, 16), "value": x(0, 2, 4, 16)}),
        *(("key, value and page table need four and two dimensions", wrong)
          for wrong in ({"page_table": ints(6)}, {"key": x(7, 2, 4)}, {"value": x(7, 2, 4)})),
        (KEYS, {"page_table": ints(2, 2)}), (UNLIKE, {"value": x(7, 2, 5, 16)}),
    ],
    "ScaledDotProductAttentionDecodeOp": [
        ("a sliding window needs cur_pos_tensor", {"cur_pos_tensor": None, "sliding_window_size": 3}),
        ("there must be one position per user", {"cur_pos_tensor": ints(2)}),
        *((BROADCAST, {"attention_mask": x(*shape), "is_causal": False})
          for shape in [(2, 3, 4, 8), (1, 2, 4, 8), (1, 3, 3, 8), (1, 3, 4, 7)]),
        ("an attention mask and is_causal exclude each other", {"attention_mask": x(1, 3, 4, 8)}),
        ("a sliding window without is_causal has no kernel", {"sliding_window_size": 3, "is_causal": False}),
        (KEYS, {"key": x(2, 2, 8, 16)}), (UNLIKE, {"value": x(3, 2, 7, 16)}),
    ],
    "SplitQueryKeyValueAndSplitHeadsOp": [
        *((WIDTH, wrong) for wrong in ({"in": x(5, 128)}, {"in": x(2, 5, 130)}, {"num_heads": 0}, {"num_kv_heads": 0})),
    ],
    "NLPConcatHeadsOp": [("the input must be B x H x S x D", {"in": x(4, 5, 16)})],
    "NLPCreateQKVHeadsDecodeOp": [
        ("batch_offset has no kernel", {"batch_offset": ints(1)}),
        (WIDTH, {"input": x(1, 3, 128)}), (WIDTH, {"input": x(1, 1, 3, 130)}), (WIDTH, {"num_heads": 0}),
        (WIDTH, {"num_kv_heads": 0}),
    ],
    "NLPConcatHeadsDecodeOp": [(RANK, {"in": x(3, 32, 16)}), (RANK, {"num_heads": 33})],
    "RotaryEmbeddingOp": [
        (CACHES, {"input": x(16), "out": y(16)}), (CACHES, {"input": x(2, 4, 5, 15)}),
        (CACHES, {"sin_cache": x(1, 1, 9, 8)}), (CACHES, {"cos_cache": x(16), "sin_cache": x(16)}),
        ("the caches have too few positions", {"input": x(2, 4, 10, 16)}),
        ("the caches have too few positions", {"token_index": 9}),
        ("the caches cannot be broadcast to the input", dict.fromkeys(("cos_cache", "sin_cache"), x(1, 1, 1, 9, 16))),
        ("the result has too few rows", {"out": y(2, 4, 4, 16)}), ("the result has too few rows", {"out": y(8, 5, 16)}),
        ("the result differs from the input in more than its number of rows", {"out": y(2, 5, 5, 16)}),
        ("the result differs from the input in more than its number of rows", {"out": y(2, 4, 32, 18)}),
    ],
}  # fmt: skip

SIZE = "a size or the number of groups is out of range"
GROUPS = "the number of channels is not a multiple of the number of groups"
COMPUTED = "the result has another number of elements than the convolution computes"
PADDING = "padding must be from 0 to 1024"
HUGE = 1 << 20
CONVOLUTIONS = {
    "Conv2dOp": [
        ("operand weight is missing", {"weight": None}),
        ("the bias does not have a value per channel", {"bias": x(1, 1, 1, 5)}),
        ("a convolution needs a float input", {"input": ints(1, 1, 84, 8)}),
        *((f"{name} must have 2 values", {name: [1]}) for name in ("kernel_size", "stride", "dilation")),
        *((f"{name} is out of range", {name: [1, n]})
          for name in ("kernel_size", "stride", "dilation") for n in (0, HUGE)),
        *((PADDING, {"padding": [0, 0, n, 0]}) for n in (-1, 1025)),
        ("padding must have two or four values", {"padding": [1, 1, 1]}),
        *((SIZE, {name: n}) for n in (0, HUGE) for name in ("groups", *products.IMAGE)),
        (GROUPS, {"groups": 3}), (GROUPS, {"groups": 4}),  # of 8 and 6 channels
        *(("the input does not have batch x height x width x channels elements", {"input": x(1, 1, 83, 8), **padding})
          for padding in ({}, {"padding": [1, 1, 0, 2]})),
        *(("the kernel is larger than the padded input", {"kernel_size": size, "stride": [2, 2], "padding": [0, 0]})
          for size in ([8, 1], [1, 7])),
        (COMPUTED, {"out": y(1, 1, 85, 6)}),
    ],
    "Conv1dOp": [
        *(("stride, dilation and groups must be positive, and padding must have two values", {name: 0})
          for name in ("stride", "dilation", "groups")),
        ("stride, dilation and groups must be positive, and padding must have two values", {"padding": [0]}),
        *((PADDING, {"padding": [0, n]}) for n in (-1, 1025)),
        ("the weight must have three dimensions", {"weight": x(6, 24)}),
        *((f"{name} is out of range", {name: n, "bias": None}) for n in (0, HUGE)
          for name in ("batch_size", "input_length", "in_channels", "out_channels", "kernel_size")),
        *(("stride or dilation is out of range", {name: HUGE}) for name in ("stride", "dilation")),
        (COMPUTED, {"out": y(2, 6, 6)}), (COMPUTED, {"kernel_size": 10}),
    ],
    "Conv3dOp": [
        *((f"{name} must have 3 values", {name: [1, 1]}) for name in ("kernel_size", "stride")),
        *(("padding must have three values, groups must be positive, and the input must have five dimensions", wrong)
          for wrong in ({"padding": [0, 0]}, {"groups": 0}, {"input": x(8, 6, 5, 4)})),
        *((PADDING, {"padding": [0, n, 0]}) for n in (-1, 1025)),
        *(("the weight does not consist of whole blocks of channels", wrong)
          for wrong in ({"conv3d_config": {"c_in_block": 5}}, {"out_channels": 0, "bias": None})),
        (COMPUTED, {"out": y(2, 3, 4, 4, 5)}),
    ],
    "ConvTranspose2dOp": [
        *(("output_padding must have two values, and padding must be symmetric", wrong)
          for wrong in ({"output_padding": [1]}, {"padding": [1, 0, 0, 0]})),
        (COMPUTED, {"output_padding": [0, 0]}),
    ],
    "PrepareConv2dWeightsOp": [
        ("the weight does not have O x C x KH x KW elements", {"weight_tensor": x(6, 8, 3, 2)}),
        ("input_dtype must be a float type", {"input_dtype": "Int32"}),
        ("a device cannot hold values of type BFP_BFloat2", {"input_dtype": "BFP_BFloat2"}),
    ],
    "PrepareConvTranspose2dWeightsOp": [
        ("the weight's shape is not I x O x KH x KW", {"weight_tensor": x(6, 8, 3, 3)}),
    ],
    "PrepareConv2dBiasOp": [("the bias does not have a value per channel", {"bias_tensor": x(1, 1, 1, 8)})],
    "PrepareConv3dWeightsOp": [
        *(("the weight must have five dimensions, and the alignment must be less than 4096", wrong)
          for wrong in ({"weight_tensor": x(6, 3, 6, 2)}, {"alignment": 4096})),
        ("c_in_block must divide the padded number of channels", {"c_in_block": 2}),
    ],
}  # fmt: skip

EXTENTS = "kernel_size, stride or dilation is out of range"
FACTOR = "scale_factor must be one or two numbers from 1 to 4095"
IMAGES = {
    "Pool2dOp": [
        *(("kernel_size, stride and dilation must have two values each", {name: [1]})
          for name in ("kernel_size", "stride", "dilation")),
        *((EXTENTS, {name: [1, n]}) for name in ("kernel_size", "stride", "dilation") for n in (0, HUGE)),
        ("padding must have two or four values", {"padding": [0]}),
        *(("padding is out of range", {"padding": [0, n]}) for n in (-1, HUGE)),
        *(("batch_size, input_height or input_width is out of range", {name: n})
          for name in ("batch_size", "input_height", "input_width") for n in (0, HUGE)),
        ("batch_size, input_height or input_width is out of range", {"in": x()}),
        ("divisor_override must be positive",
         {"type": "AvgPool2d", "extra_params": {"AvgPool2dExtraParams": {"divisor_override": 0}}}),
        ("the result is a scalar", {"out": y()}),
        ("the kernel is larger than the padded input", {"kernel_size": [8, 1]}),
        ("the kernel is larger than the padded input", {"kernel_size": [1, 4], "dilation": [1, 2]}),
        ("the result has another number of elements than the pooling computes", {"out": y(1, 1, 31, 8)}),
    ],
    "MaxPool2dWithIndicesOp": [
        ("max pooling with indices needs symmetric padding", {"padding": [1, 0, 1, 1]}),
        ("the op needs much more memory than its tensors have", {"batch_size": 1 << 19}),
    ],
    "GlobalAvgPool2dOp": [("the input must be N x H x W x C", {"in": x(6, 5, 8)})],
    "UpsampleOp": [
        *(("the input must be N x H x W x C, and scale_factor must be given", wrong)
          for wrong in ({"in": x(4, 3, 8)}, {"scale_factor": None})),
        *((FACTOR, {"scale_factor": {"NonUniformScale2D": {"scale": scale}}}) for scale in
          ([2, 2, 2], [0, 2], [2, 0], [-1, 2], [2, -1], [4096, 1], [1, 4096])),
        *(("the result's shape is not that of the scaled input", {"out": y(*shape)})
          for shape in [(1, 8, 6, 8), (2, 7, 6, 8), (2, 8, 5, 8), (2, 8, 6, 9)]),
    ],
    "BatchNormInferenceOp": [
        *(("the input must have at least two dimensions", {"input": x(*shape)}) for shape in [(), (8,)]),
        *(("a statistic or weight does not have one value per channel", {name: x(7)})
          for name in ("running_mean", "running_var", "weight", "bias")),
    ],
    "BatchNormTrainingOp": [
        *(("a statistic or weight does not have one value per channel", {name: x(7)})
          for name in ("running_mean", "running_var", "weight", "bias")),
    ],
    "GroupNormOp": [
        ("the input must be N x 1 x H*W x C", wrong) for wrong in ({"input": x(1, 15, 8)}, {"num_groups": 0})
    ],
}  # fmt: skip

INNER = "the inner dimensions of the operands differ"
ONE_PER_DIMENSION = "begins and ends must have one number per dimension"
REPEATED = "repeat_dims is out of range, or the result's shape is not that of the repeated operand"
REPEATS = "repeats is out of range, or the result's shape is not that of the repeated operand"
JOINED = "the operands differ in a dimension that is not joined"
STEP = 1 << 30


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
    "PagedUpdateCacheOp": [
        *(("caches have four dimensions", {name: x(2, 5, 16)}) for name in ("cache", "input")),
        *(("the input must be 1 x users x at least the heads of the cache x depth", {"input": x(*shape)})
          for shape in [(2, 3, 2, 16), (1, 3, 1, 16), (1, 3, 2, 8)]),
        ("share_cache has no kernel", {"share_cache": True}),
        ("there must be one position per user", {"update_index": ints(2)}),
        ("without a page table, the cache must have the users of the input", {"page_table": None}),
        *(("the page table must have a row per user", {"page_table": ints(*shape)}) for shape in [(3,), (2, 2)]),
    ],
    "PagedFillCacheOp": [
        *(("caches have four dimensions", {name: x(2, 5, 16)}) for name in ("cache", "input")),
        ("cache and input differ in heads or depth", {"input": x(1, 3, 7, 16)}),
        ("the page table must have a row per user", {"page_table": ints(3)}),
        *(("the pages of a user do not have these positions", wrong)
          for wrong in ({"input": x(1, 2, 9, 16)}, {"cache": x(7, 2, 0, 16)})),
        *(("there must be one user for each row of the input", wrong)
          for wrong in ({"input": x(2, 2, 7, 16)}, {"batch_idx_tensor": ints(2)})),
    ],
    "FillCacheOp": [
        *(("caches have four dimensions", {name: x(2, 5, 16)}) for name in ("cache", "input")),
        *(("cache and input differ in heads or depth", {"input": x(1, heads, 5, depth)})
          for heads, depth in [(3, 16), (2, 8)]),
        *(("the cache does not have these users", {"batch_offset": row}) for row in (3, 9)),
        ("the cache does not have these positions", {"input": x(1, 2, 9, 16)}),
    ],
    "UpdateCacheOp": [
        *(("caches have four dimensions", {name: x(2, 5, 16)}) for name in ("cache", "input")),
        ("cache and input differ in heads or depth", {"input": x(1, 1, 2, 16)}),
        *(("the cache does not have these users", {"batch_offset": row}) for row in (2, 9)),
        ("the input must have one row per user", {"input": x(2, 2, 1, 16)}),
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
        ("the program needs a mesh of several chips", {"mesh": mesh}) for mesh in ({"x": 1, "y": 2}, {"x": 2, "y": 1})
    ],
}  # fmt: skip

REFUSED = ATTENTION | CONVOLUTIONS | IMAGES | MOVEMENT | ELEMENTS

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

"""Facts of the whole table of calls: which function a row names, and which fields it passes."""

from __future__ import annotations

from tt_torch.codegen import calls
from tt_torch.mlir.ttnn import dialect

# The function of an op has the name of the op, or of the member of its family. These are the exceptions.
OTHER_NAMES = {
    "DistributedRMSNormOp": "fused_rms_minimal",
    "BitcastConvertOp": "bitcast",
    "TopKOp": "topk",
    "ReductionArgMaxOp": "argmax",
    "ReductionProdOp": "prod",
    "EltwiseTernaryWhereOp": "where",
    "EltwiseBinaryOp.Equal": "eq",
    "EltwiseBinaryOp.NotEqual": "ne",
    "EltwiseBinaryOp.GreaterEqual": "ge",
    "EltwiseBinaryOp.GreaterThan": "gt",
    "EltwiseBinaryOp.LessEqual": "le",
    "EltwiseBinaryOp.LessThan": "lt",
    "EltwiseBinaryCompositeScalarOp.PowScalar": "pow",
    "EltwiseUnaryCompositeOp.ClampScalar": "clamp",
    "EltwiseUnaryCompositeOp.ClampTensor": "clamp",
    "EltwiseUnaryOp.IsFinite": "isfinite",
    "SliceOp.SliceStaticOp": "slice",
    "SliceOp.SliceDynamicOp": "slice",
    "BatchNormInferenceOp": "batch_norm",
    "MaxPool2dWithIndicesOp": "max_pool2d",
    "RMSNormOp": "rms_norm",
    "NLPConcatHeadsOp": "nlp_concat_heads",
    "PrepareConv2dBiasOp": "prepare_conv_bias",
    "PrepareConv2dWeightsOp": "prepare_conv_weights",
    "WriteTensorOp": "copy_host_to_device_tensor",
}
MODULES = {
    "Conv3dOp": "ttnn.experimental",
    "NLPConcatHeadsOp": "ttnn.experimental",
    "PagedFillCacheOp": "ttnn.experimental",
    "PagedUpdateCacheOp": "ttnn.experimental",
    "RotaryEmbeddingLlamaOp": "ttnn.experimental",
    "RotaryEmbeddingOp": "ttnn.experimental",
    "ConcatenateHeadsOp": "ttnn.transformer",
    "PagedScaledDotProductAttentionDecodeOp": "ttnn.transformer",
    "ScaledDotProductAttentionOp": "ttnn.transformer",
    "SplitQueryKeyValueAndSplitHeadsOp": "ttnn.transformer",
}
# Results, and the kind of a union's value, are no arguments. NOT_PASSED are the other fields without an argument.
RESULTS = {"out", "outputs", "q_out", "k_out", "v_out", "result", "result_indices"}
NOT_PASSED = {
    "EltwiseUnaryOp": {"params"},
    "EltwiseUnaryOp.LeakyRelu": set(),
    "EltwiseUnaryCompositeOp.Cbrt": {"params"},
    "EltwiseUnaryCompositeOp.Log1p": {"params"},
    "PagedScaledDotProductAttentionDecodeOp": {"program_config"},
    "Conv3dOp": {"batch_size", "in_channels", "input_depth", "input_height", "input_width", "conv3d_config"},
    "ConvTranspose2dOp": {"conv2d_slice_config"},
    "PrepareConvTranspose2dBiasOp": {"conv2d_slice_config"},
    "PrepareConvTranspose2dWeightsOp": {"conv2d_slice_config", "output_padding"},
    "Pool2dOp.MaxPool2d": {"extra_params"},
    "Pool2dOp.AvgPool2d": {"dilation"},
    "ConstantOp": {"device", "layout", "input_dtype"},  # a program loads constants from a file
    "WriteTensorOp": {"blocking"},
    "BeginTraceCaptureOp": {"trace_id"},  # the result of the op
    "EmptyOp": {"shape"},  # it has the shape of the result, padding of tiles included
    "AssignOp": {"output_memory_config"},  # the call passes the configuration of the result instead
    "BatchNormInferenceOp": {"memory_config"},
    "AllReduceOp": {"reduce_type"},  # the functions only add, and other reductions are refused
    "ReduceScatterOp": {"reduce_type"},
    "DistributeTensorOp": {"cq_id"},
    "AggregateTensorOp": {"device"},  # its composer has the device
}


def test_the_function_of_a_row_has_the_name_of_its_op():
    for key, row in calls.rows().items():
        table, _, member = key.partition(".")
        module, _, name = row.function.rpartition(".")
        usual = calls.snake(member or table.removesuffix("Op"))
        usual = usual.replace("_", "") if usual.startswith("cum_") else usual  # running sums, products and so on
        assert name == OTHER_NAMES.get(key, usual), key
        assert module == MODULES.get(key, "ttnn"), key


def test_a_row_passes_each_field_of_its_op():
    for key, row in calls.rows().items():
        table = key.partition(".")[0]
        fields = {name for name in dialect.wire_fields(table) if name != "type"} - RESULTS
        arguments = {name for name in fields if name.removesuffix("_type") == name or name[:-5] not in fields}
        passed = {argument.path.partition(".")[0] for argument in row.arguments}
        assert arguments - passed == NOT_PASSED.get(key, NOT_PASSED.get(table, set())), key

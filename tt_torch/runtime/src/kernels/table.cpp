// The kernel table: which op of the wire format is run by which builder. What is missing is unsupported.
#include <algorithm>
#include <iterator>

#include "kernels/kernels.h"

namespace tt::runtime {

namespace {

using namespace kernels;

struct Row {
  std::string_view op;
  Kernel build;
};

constexpr Row rows[] = {
    {"AnnotateOp", identity_marker},
    {"ArangeOp", arange},
    {"AssignOp", assign},
    {"BatchNormInferenceOp", batch_norm_inference},
    {"BatchNormTrainingOp", batch_norm_training},
    {"BitcastConvertOp", bitcast},
    {"ConcatOp", concat},
    {"ConcatenateHeadsOp", concatenate_heads},
    {"ConstantOp", constant},
    {"Conv1dOp", conv1d},
    {"Conv2dOp", conv2d},
    {"Conv3dOp", conv3d},
    {"ConvTranspose2dOp", conv_transpose2d},
    {"CopyOp", copy},
    {"CpuOp", host_function},
    {"CumProdOp", cumulative_product},
    {"CumSumOp", cumulative_sum},
    {"DeallocateOp", deallocate},
    {"DropoutOp", dropout},
    {"EltwiseBinaryCompositeOp", binary_composite},
    {"EltwiseBinaryCompositeScalarOp", power_scalar},
    {"EltwiseBinaryOp", binary},
    {"EltwiseQuantizationOp", quantization},
    {"EltwiseTernaryWhereOp", where},
    {"EltwiseUnaryCompositeOp", unary_composite},
    {"EltwiseUnaryOp", unary},
    {"EmbeddingBackwardOp", embedding_backward},
    {"EmbeddingOp", embedding},
    {"EmptyOp", empty},
    {"ExperimentalEltwiseBinaryBackwardOp", gelu_backward},
    {"FillCacheOp", fill_cache},
    {"FromDeviceOp", to_layout},
    {"FullOp", full},
    {"FuncCallOp", func_call},
    {"GatherOp", gather},
    {"GetDeviceOp", get_device},
    {"GlobalAvgPool2dOp", global_avg_pool2d},
    {"GroupNormOp", group_norm},
    {"LayerNormOp", layer_norm},
    {"LinearOp", matmul},
    {"LoadCachedOp", load_cached},
    {"MatmulOp", matmul},
    {"MaxPool2dWithIndicesOp", max_pool2d_with_indices},
    {"MemorySnapshotOp", no_effect},
    {"NLPConcatHeadsDecodeOp", concatenate_heads_decode},
    {"NLPConcatHeadsOp", concatenate_heads},
    {"NLPCreateQKVHeadsDecodeOp", create_heads_decode},
    {"NamedFullOp", named_full},
    {"PadOp", pad},
    {"PermuteOp", permute},
    {"Pool2dOp", pool2d},
    {"PrepareConv2dBiasOp", prepare_bias},
    {"PrepareConv2dWeightsOp", prepare_conv2d_weights},
    {"PrepareConv3dWeightsOp", prepare_conv3d_weights},
    {"PrepareConvTranspose2dBiasOp", prepare_bias},
    {"PrepareConvTranspose2dWeightsOp", prepare_conv_transpose2d_weights},
    {"PrintOp", no_effect},
    {"RMSNormOp", rms_norm},
    {"RandOp", random},
    {"ReductionArgMaxOp", argmax},
    {"ReductionOp", reduction},
    {"ReductionProdOp", product},
    {"RegionEndOp", identity_marker},
    {"RegionStartOp", identity_marker},
    {"RepeatInterleaveOp", repeat_interleave},
    {"RepeatOp", repeat},
    {"ReshapeOp", reshape},
    {"RotaryEmbeddingOp", rotary_embedding},
    {"ScaledDotProductAttentionDecodeOp", attention_decode},
    {"ScaledDotProductAttentionOp", attention},
    {"ScatterOp", scatter},
    {"SliceOp", slice},
    {"SoftmaxOp", softmax},
    {"SortOp", sort},
    {"SplitQueryKeyValueAndSplitHeadsOp", split_heads},
    {"ToDeviceOp", to_layout},
    {"ToLayoutOp", to_layout},
    {"ToMemoryConfigOp", to_memory_config},
    {"TopKOp", top_k},
    {"TransposeOp", transpose},
    {"TypecastOp", typecast},
    {"UpdateCacheOp", update_cache},
    {"UpsampleOp", upsample},
    {"WriteTensorOp", write_tensor},
};
static_assert(std::ranges::is_sorted(rows, {}, &Row::op));

}  // namespace

Kernel find_kernel(std::string_view op) {
  const auto row = std::ranges::lower_bound(rows, op, {}, &Row::op);
  return row != std::end(rows) && row->op == op ? row->build : nullptr;
}

}  // namespace tt::runtime

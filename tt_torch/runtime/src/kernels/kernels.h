// The builders of all kernels. Each reads one op's attributes and adds the steps that run it.
#pragma once

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "builder.h"
#include "values.h"

namespace tt::runtime::kernels {

// One line per builder; the families are the files. Which op uses which builder: table.cpp.
#define TT_KERNEL(name) void name(OpBuilder& op)

// structure.cpp
TT_KERNEL(get_device);
TT_KERNEL(deallocate);
TT_KERNEL(load_cached);
TT_KERNEL(func_call);
TT_KERNEL(identity_marker);
TT_KERNEL(no_effect);
// host_code.cpp
TT_KERNEL(host_function);
// layout.cpp
TT_KERNEL(to_layout);
TT_KERNEL(to_memory_config);
TT_KERNEL(typecast);
TT_KERNEL(bitcast);
TT_KERNEL(assign);
TT_KERNEL(copy);
TT_KERNEL(write_tensor);
// creation.cpp
TT_KERNEL(full);
TT_KERNEL(named_full);
TT_KERNEL(arange);
TT_KERNEL(constant);
TT_KERNEL(empty);
TT_KERNEL(random);
TT_KERNEL(dropout);
// elementwise.cpp
TT_KERNEL(binary);
TT_KERNEL(binary_composite);
TT_KERNEL(power_scalar);
TT_KERNEL(where);
TT_KERNEL(quantization);
TT_KERNEL(gelu_backward);
// unary.cpp
TT_KERNEL(unary);
TT_KERNEL(unary_composite);
// reduction.cpp
TT_KERNEL(reduction);
TT_KERNEL(product);
TT_KERNEL(argmax);
TT_KERNEL(cumulative_sum);
TT_KERNEL(cumulative_product);
TT_KERNEL(sort);
TT_KERNEL(top_k);
// matmul.cpp
TT_KERNEL(matmul);
// convolution.cpp
TT_KERNEL(conv2d);
TT_KERNEL(conv1d);
TT_KERNEL(conv3d);
TT_KERNEL(conv_transpose2d);
TT_KERNEL(prepare_conv2d_weights);
TT_KERNEL(prepare_bias);
TT_KERNEL(prepare_conv_transpose2d_weights);
TT_KERNEL(prepare_conv3d_weights);
// pooling.cpp
TT_KERNEL(pool2d);
TT_KERNEL(max_pool2d_with_indices);
TT_KERNEL(global_avg_pool2d);
TT_KERNEL(upsample);
// movement.cpp
TT_KERNEL(reshape);
TT_KERNEL(permute);
TT_KERNEL(transpose);
TT_KERNEL(concat);
TT_KERNEL(slice);
TT_KERNEL(pad);
TT_KERNEL(repeat);
TT_KERNEL(repeat_interleave);
// indexing.cpp
TT_KERNEL(gather);
TT_KERNEL(scatter);
TT_KERNEL(embedding);
TT_KERNEL(embedding_backward);
TT_KERNEL(fill_cache);
TT_KERNEL(update_cache);
// normalization.cpp
TT_KERNEL(softmax);
TT_KERNEL(layer_norm);
TT_KERNEL(rms_norm);
TT_KERNEL(batch_norm_inference);
TT_KERNEL(batch_norm_training);
TT_KERNEL(group_norm);
// attention.cpp
TT_KERNEL(attention);
TT_KERNEL(attention_decode);
TT_KERNEL(split_heads);
TT_KERNEL(concatenate_heads);
TT_KERNEL(create_heads_decode);
TT_KERNEL(concatenate_heads_decode);
TT_KERNEL(rotary_embedding);

#undef TT_KERNEL

// The value of an optional operand, for ATen calls that take optional tensors.
inline at::Tensor value_or_none(Frame& frame, std::optional<Slot> slot) {
  return slot ? frame[*slot] : at::Tensor();
}

}  // namespace tt::runtime::kernels

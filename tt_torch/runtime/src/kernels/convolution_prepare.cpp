// Prepares the weights of convolutions. The described shape of the result is the shape in the device library.
// The value here has the form that our own convolutions need: packed by oneDNN, or the plain weight.
#include "kernels/convolution.h"

namespace tt::runtime::kernels {

namespace {

using Tensor = at::Tensor;

// The weight, rounded to its type on the device (`weights`), and then converted to the type in which the
// convolution computes (`type`).
Tensor rounded(const Tensor& weight, DataType weights, at::ScalarType type) {
  return to_value(weight, weights).to(type);
}

at::ScalarType activation_type(OpBuilder& op) {
  const DataType dtype = decode_dtype(op.attributes(), "input_dtype");
  op.require(is_float(dtype), "input_dtype must be a float type");
  return storage_type(dtype);
}

}  // namespace

static void prepare_conv2d_weights(OpBuilder& op) {
  const Convolution c = read_convolution(op);
  const at::ScalarType type = computed_type(activation_type(op), c.kernel[1]);
  const Slot source = op.in("weight_tensor"), out = op.out();
  const std::vector<int64_t> shape = c.weight();
  op.require(checked_volume(op.spec(source).shape) == checked_volume(shape),
             "the weight does not have O x C x KH x KW elements");
  op.opaque(out, weight_form(c), [=, dtype = op.spec(out).dtype](Frame& f) {
    return onednn::pack_convolution(rounded(f[source], dtype, type).reshape(shape), c.shape);
  });
}

// The device library computes a transposed convolution as a plain one with a mirrored kernel. This op mirrors
// the kernel, unless the weight is mirrored already. Our convolution needs the kernel as it was before.
static void prepare_conv_transpose2d_weights(OpBuilder& op) {
  const Convolution c = read_convolution(op);
  const at::ScalarType type = activation_type(op);
  const Slot source = op.in("weight_tensor"), out = op.out();
  op.require(op.spec(source).shape == c.transposed_weight(), "the weight's shape is not I x O x KH x KW");
  const bool mirrored = !op.attributes().flag("mirror_kernel");
  op.opaque(out, transposed_weight_form(c), [=, dtype = op.spec(out).dtype](Frame& f) {
    const Tensor weight = rounded(f[source], dtype, type);
    return mirrored ? weight.flip({2, 3}) : weight;
  });
}

static void prepare_bias(OpBuilder& op) {
  const Slot source = op.in("bias_tensor"), out = op.out();
  const int64_t channels = op.attributes().integer("out_channels");
  op.require(checked_volume(op.spec(source).shape) == channels, "the bias does not have a value per channel");
  op.opaque(out, bias_form(channels),
            [=, dtype = op.spec(out).dtype](Frame& f) { return to_value(f[source], dtype); });
}

static void prepare_conv3d_weights(OpBuilder& op) {
  const Slot source = op.in("weight_tensor"), out = op.out();
  const int64_t alignment = std::max<int64_t>(op.attributes().integer("alignment"), 1);
  const int64_t block = op.attributes().integer("c_in_block");
  op.require(op.spec(source).shape.size() == 5 && alignment < 4096,
             "the weight must have five dimensions, and the alignment must be less than 4096");
  const int64_t channels = op.spec(source).shape[1];
  const int64_t padded = (channels + alignment - 1) / alignment * alignment;
  op.require(block == 0 || padded % block == 0, "c_in_block must divide the padded number of channels");
  // The blocks of channels come first, then the positions of the kernel, then the channels of a block.
  op.compute(out, [=](Frame& f) {
    const Tensor weight = at::constant_pad_nd(f[source], {0, 0, 0, 0, 0, 0, 0, padded - channels});
    const Tensor blocks = weight.unflatten(1, {block ? padded / block : 1, block ? block : padded});
    return blocks.permute({1, 3, 4, 5, 2, 0}).reshape({-1, weight.size(0)});
  });
}

static constexpr Row convolution_prepare_rows[] = {
    {"PrepareConv2dBiasOp", prepare_bias},
    {"PrepareConv2dWeightsOp", prepare_conv2d_weights},
    {"PrepareConv3dWeightsOp", prepare_conv3d_weights},
    {"PrepareConvTranspose2dBiasOp", prepare_bias},
    {"PrepareConvTranspose2dWeightsOp", prepare_conv_transpose2d_weights},
};
constinit const Table convolution_prepare_ops = convolution_prepare_rows;

}  // namespace tt::runtime::kernels

// Convolutions. Their activations are flattened NHWC tensors.
#include "kernels/convolution.h"

namespace tt::runtime::kernels {

namespace {

using Tensor = at::Tensor;
using Ints = std::vector<int64_t>;

constexpr int64_t kMaxPadding = 1024;

Ints positive(OpBuilder& op, const char* field, size_t count) {
  Ints values = op.attributes().integers(field);
  if (values.size() != count)
    op.invalid(std::string(field) + " must have " + std::to_string(count) + " values");
  for (int64_t value : values)
    if (value <= 0 || value >= kSizeLimit) op.invalid(std::string(field) + " is out of range");
  return values;
}

void read_padding(OpBuilder& op, Convolution& c) {
  const Ints padding = op.attributes().integers("padding");
  for (int64_t value : padding)
    op.require(value >= 0 && value <= kMaxPadding, "padding must be from 0 to 1024");
  op.require(padding.size() == 2 || padding.size() == 4, "padding must have two or four values");
  if (padding.size() == 2)
    c.shape.padding = padding;
  else if (padding[0] == padding[1] && padding[2] == padding[3])
    c.shape.padding = {padding[0], padding[2]};
  else {
    c.shape.padding = {0, 0};
    c.edges = {padding[2], padding[3], padding[0], padding[1]};
  }
}

// The number of positions of a window over a padded dimension; 0 if it does not fit. Example: a kernel of 3
// with stride 2 has 3 positions over 8 elements.
int64_t windows(int64_t padded, int64_t kernel, int64_t stride, int64_t dilation) {
  const int64_t room = padded - dilation * (kernel - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

struct Operands {
  Slot input, weight;
  std::optional<Slot> bias, added;
  Slot out;
  Activation activation;
  at::ScalarType type;
  Ints result;
};

Operands read_operands(OpBuilder& op, const std::string& weight_form, int64_t kernel_width = 1) {
  const auto weight = op.maybe_prepared("weight", weight_form);
  op.require(weight.has_value(), "operand weight is missing");
  const int64_t channels = op.attributes().integer("out_channels");
  Operands o{op.in("input"), *weight, op.maybe_prepared("bias", bias_form(channels)), std::nullopt, -1, {},
             at::kFloat,     {}};
  op.require(!o.bias || op.is_prepared(*o.bias) || checked_volume(op.spec(*o.bias).shape) == channels,
             "the bias does not have a value per channel");
  o.out = op.out();
  o.type = computed_type(storage_type(op.spec(o.input).dtype), kernel_width);
  op.require(at::isFloatingType(o.type), "a convolution needs a float input");
  o.result = op.spec(o.out).shape;
  const auto config = op.attributes().record("conv2d_config");
  if (const auto activation = config ? config->record("activation") : std::nullopt)
    o.activation = activation_of(*activation);
  return o;
}

// Checks the result's size before anything runs, so that a damaged binary does not make a huge result.
void require_size(OpBuilder& op, const Operands& o, const Ints& size) {
  op.require(checked_volume(size) == checked_volume(o.result),
             "the result has another number of elements than the convolution computes");
}

std::optional<Tensor> bias_of(const Operands& o, Frame& f) {
  if (!o.bias) return std::nullopt;
  return f[*o.bias].reshape({-1}).to(o.type);
}

Tensor apply(const Activation& activation, const Tensor& value) {
  return activation.apply ? activation.apply(value) : value;
}

Tensor packed_convolution(const Operands& o, const Convolution& c, const Tensor& x, Frame& f) {
  const bool fusible = !o.activation.apply || !o.activation.fused.empty();
  if (!o.added) {
    const Tensor y =
        onednn::convolution(x, f[o.weight], bias_of(o, f), c.shape, fusible ? o.activation : Activation{});
    return fusible ? y : apply(o.activation, y);
  }
  const Ints size = c.out_size();
  const bool relu = o.activation.fused == "relu";
  const Tensor y = onednn::convolution_add(x, as_image(f[*o.added], c.batch, size[0], size[1]), f[o.weight],
                                           bias_of(o, f), c.shape, relu);
  return relu ? y : apply(o.activation, y);
}

Tensor run_conv2d(const Operands& o, const Convolution& c, Frame& f) {
  Tensor x = as_image(f[o.input].to(o.type), c.batch, c.height, c.width);
  if (!c.edges.empty()) x = at::constant_pad_nd(x, c.edges);
  if (f[o.weight].is_mkldnn()) return as_flat(packed_convolution(o, c, x, f), o.result);
  Tensor weight = f[o.weight].to(o.type).reshape(c.weight());
  if (c.channels == 1) weight = weight.reshape(-1).reshape(c.weight());  // as in as_image
  Tensor y =
      at::conv2d(x, weight, bias_of(o, f), c.shape.stride, c.shape.padding, c.shape.dilation, c.shape.groups);
  if (o.added) {
    const Ints size = c.out_size();
    y = y + as_image(f[*o.added], c.batch, size[0], size[1]);
  }
  return as_flat(apply(o.activation, y), o.result);
}

// Lets an add and a relu or gelu that follow the convolution run as part of it.
void absorb_tails(OpBuilder& op, Operands& o) {
  if (o.activation.apply || storage_type(op.spec(o.out).dtype) != o.type) return;
  const auto first = op.absorb(o.out, true);
  if (!first) return;
  if (first->other < 0) {
    o.activation = activation_named(first->activation);
    return;
  }
  o.added = first->other;
  if (const auto second = op.absorb(o.out, false)) o.activation = activation_named(second->activation);
}

}  // namespace

at::ScalarType computed_type(at::ScalarType type, int64_t kernel_width) {
  return type == at::kBFloat16 && (kernel_width >= 8 || !onednn::supports(type)) ? at::kFloat : type;
}

std::vector<int64_t> Convolution::out_size() const {
  Ints result;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t pad = edges.empty() ? 2 * shape.padding[i] : edges[2 - 2 * i] + edges[3 - 2 * i];
    const int64_t size = i == 0 ? height : width;
    result.push_back(windows(size + pad, kernel[i], shape.stride[i], shape.dilation[i]));
  }
  return result;
}

std::vector<int64_t> Convolution::weight() const {
  return {out_channels, channels / shape.groups, kernel[0], kernel[1]};
}

std::vector<int64_t> Convolution::transposed_weight() const {
  return {channels, out_channels / shape.groups, kernel[0], kernel[1]};
}

std::string weight_form(const Convolution& c) {
  return "the weight " + describe(c.weight()) + " of a convolution in " + std::to_string(c.shape.groups) +
         " groups";
}

std::string transposed_weight_form(const Convolution& c) {
  return "the weight " + describe(c.transposed_weight()) + " of a transposed convolution";
}

std::string bias_form(int64_t channels) { return "the bias of " + std::to_string(channels) + " channels"; }

Convolution read_convolution(OpBuilder& op) {
  const auto& a = op.attributes();
  Convolution c;
  c.kernel = positive(op, "kernel_size", 2);
  c.shape.stride = positive(op, "stride", 2);
  c.shape.dilation = positive(op, "dilation", 2);
  read_padding(op, c);
  c.shape.groups = a.integer("groups");
  c.batch = a.integer("batch_size");
  c.height = a.integer("input_height");
  c.width = a.integer("input_width");
  c.channels = a.integer("in_channels");
  c.out_channels = a.integer("out_channels");
  for (int64_t value : {c.shape.groups, c.batch, c.height, c.width, c.channels, c.out_channels})
    op.require(value > 0 && value < kSizeLimit, "a size or the number of groups is out of range");
  op.require(c.channels % c.shape.groups == 0 && c.out_channels % c.shape.groups == 0,
             "the number of channels is not a multiple of the number of groups");
  const Ints edges = c.edges.empty() ? Ints{0, 0, 0, 0} : c.edges;
  c.shape.input = {c.batch, c.channels, c.height + edges[2] + edges[3], c.width + edges[0] + edges[1]};
  return c;
}

// The strides of one channel say nothing about the order of channels. If they look like channels that come
// last, PyTorch's convolution takes wrong elements where it has a result of width 1.
at::Tensor as_image(const at::Tensor& flat, int64_t batch, int64_t height, int64_t width) {
  if (flat.size(-1) == 1) return flat.reshape(-1).reshape({batch, 1, height, width});
  return flat.reshape({batch, height, width, flat.size(-1)}).permute({0, 3, 1, 2});
}

static void conv2d(OpBuilder& op) {
  const Convolution c = read_convolution(op);
  Operands o = read_operands(op, weight_form(c), c.kernel[1]);
  op.require(
      checked_volume(op.spec(o.input).shape) == checked_volume({c.batch, c.height, c.width, c.channels}),
      "the input does not have batch x height x width x channels elements");
  const auto size = c.out_size();
  op.require(size[0] > 0 && size[1] > 0, "the kernel is larger than the padded input");
  require_size(op, o, {c.batch, size[0], size[1], c.out_channels});
  const bool raw = !op.is_prepared(o.weight) && op.spec(o.weight).shape == c.weight();
  if (raw) {
    std::string key = std::string("conv") + toString(o.type);
    for (const auto* part : {&c.shape.stride, &c.shape.padding, &c.shape.dilation, &c.shape.input})
      key += "|" + describe(*part);
    // The plain form is an input or a constant in OIHW order, so unpacking can restore it.
    op.prefer(o.weight,
              {key + "|" + std::to_string(c.shape.groups),
               [c, type = o.type](const Tensor& w) { return onednn::pack_convolution(w.to(type), c.shape); },
               [](const Tensor& packed) { return packed.is_mkldnn() ? packed.to_dense() : packed; }});
  }
  op.require_scratch(checked_volume(c.shape.input), {o.input, o.out});
  absorb_tails(op, o);
  op.compute(o.out, [o, c](Frame& f) { return run_conv2d(o, c, f); });
}

static void conv1d(OpBuilder& op) {
  const auto& a = op.attributes();
  const Operands o = read_operands(op, "", a.integer("kernel_size"));
  const int64_t stride = a.integer("stride"), dilation = a.integer("dilation"), groups = a.integer("groups");
  const Ints padding = a.integers("padding");
  op.require(padding.size() == 2 && stride > 0 && dilation > 0 && groups > 0,
             "stride, dilation and groups must be positive, and padding must have two values");
  for (int64_t value : padding)
    op.require(value >= 0 && value <= kMaxPadding, "padding must be from 0 to 1024");
  op.require(op.spec(o.weight).shape.size() >= 3, "the weight must have three dimensions");
  for (const char* field : {"batch_size", "input_length", "in_channels", "out_channels", "kernel_size"})
    if (a.integer(field) <= 0 || a.integer(field) >= kSizeLimit)
      op.invalid(std::string(field) + " is out of range");
  const int64_t length = a.integer("input_length") + padding[0] + padding[1];
  op.require(stride < kSizeLimit && dilation < kSizeLimit, "stride or dilation is out of range");
  require_size(op, o,
               {a.integer("batch_size"), windows(length, a.integer("kernel_size"), stride, dilation),
                a.integer("out_channels")});
  const Ints input{a.integer("batch_size"), a.integer("input_length"), a.integer("in_channels")};
  op.require_scratch(checked_volume({input[0], length, input[2]}), {o.input, o.out});
  const Ints weight{a.integer("out_channels"), a.integer("in_channels") / groups, a.integer("kernel_size")};
  op.compute(o.out, [=](Frame& f) {
    const Tensor x = at::constant_pad_nd(f[o.input].to(o.type).reshape(input).transpose(1, 2), padding);
    const Tensor y = at::conv1d(x, f[o.weight].to(o.type).reshape(weight), bias_of(o, f), Ints{stride},
                                Ints{0}, Ints{dilation}, groups);
    return apply(o.activation, y).transpose(1, 2).reshape(o.result);
  });
}

// The number of blocks of input channels in a weight that is prepared for a 3D convolution. The weight has
// `per_channel` elements per input channel.
static int64_t blocks_of_channels(OpBuilder& op, const Operands& o, int64_t per_channel) {
  const auto config = op.attributes().record("conv3d_config");
  const int64_t block = config ? config->integer("c_in_block") : 0;
  const int64_t elements = checked_volume(op.spec(o.weight).shape);
  op.require(per_channel > 0 && elements % (per_channel * std::max<int64_t>(block, 1)) == 0,
             "the weight does not consist of whole blocks of channels");
  return block ? elements / (per_channel * block) : 1;
}

static void conv3d(OpBuilder& op) {
  const auto& a = op.attributes();
  constexpr wire::Named<bool> pads_with_zeros[] = {{"zeros", true}, {"replicate", false}};
  const bool zeros = a.choose("padding_mode", pads_with_zeros);
  const Ints kernel = positive(op, "kernel_size", 3), stride = positive(op, "stride", 3);
  const Operands o = read_operands(op, "", kernel[2]);
  const Ints dilation = a.has("dilation") ? positive(op, "dilation", 3) : Ints{1, 1, 1};
  const Ints p = a.integers("padding");
  const int64_t groups = a.integer("groups");
  op.require(
      p.size() == 3 && groups > 0 && op.spec(o.input).shape.size() == 5,
      "padding must have three values, groups must be positive, and the input must have five dimensions");
  for (int64_t value : p) op.require(value >= 0 && value <= kMaxPadding, "padding must be from 0 to 1024");
  const Ints sides{p[2], p[2], p[1], p[1], p[0], p[0]};
  const int64_t channels = op.spec(o.input).shape[4], outs = a.integer("out_channels");
  const int64_t depth = channels / groups;
  const int64_t blocks = blocks_of_channels(op, o, checked_volume(kernel) * outs);
  const auto& image = op.spec(o.input).shape;
  Ints size{image[0], outs}, padded{image[0], channels};
  for (size_t i = 0; i < 3; ++i) {
    padded.push_back(image[i + 1] + 2 * p[i]);
    size.push_back(windows(padded.back(), kernel[i], stride[i], dilation[i]));
  }
  require_size(op, o, size);
  op.require_scratch(checked_volume(padded), {o.input, o.out});
  op.compute(o.out, [=](Frame& f) {
    // The prepared weight is (C/block*KD*KH*KW*block, O), with C padded to a multiple of the alignment.
    const Tensor matrix = f[o.weight].to(o.type).reshape({blocks, kernel[0], kernel[1], kernel[2], -1, outs});
    const Tensor taps = matrix.permute({5, 0, 4, 1, 2, 3}).flatten(1, 2).narrow(1, 0, depth);
    Tensor x = f[o.input].to(o.type).permute({0, 4, 1, 2, 3});
    x = zeros ? at::constant_pad_nd(x, sides) : at::pad(x, sides, "replicate");
    const Tensor y = at::conv3d(x, taps.contiguous(), bias_of(o, f), stride, Ints{0, 0, 0}, dilation, groups);
    return y.permute({0, 2, 3, 4, 1}).reshape(o.result);
  });
}

static void conv_transpose2d(OpBuilder& op) {
  const Convolution c = read_convolution(op);
  const Operands o = read_operands(op, transposed_weight_form(c));
  const Ints extra = op.attributes().integers("output_padding");
  op.require(extra.size() == 2 && c.edges.empty(),
             "output_padding must have two values, and padding must be symmetric");
  Ints size{c.batch, c.out_channels};
  for (size_t i = 0; i < 2; ++i)
    size.push_back(((i == 0 ? c.height : c.width) - 1) * c.shape.stride[i] - 2 * c.shape.padding[i] +
                   c.shape.dilation[i] * (c.kernel[i] - 1) + extra[i] + 1);
  require_size(op, o, size);
  op.compute(o.out, [=](Frame& f) {
    const Tensor x = as_image(f[o.input].to(o.type), c.batch, c.height, c.width);
    const Tensor weight = f[o.weight].to(o.type).reshape(c.transposed_weight());
    const Tensor y = at::conv_transpose2d(x, weight, bias_of(o, f), c.shape.stride, c.shape.padding, extra,
                                          c.shape.groups, c.shape.dilation);
    return as_flat(apply(o.activation, y), o.result);
  });
}

static constexpr Row convolution_rows[] = {
    {"Conv1dOp", conv1d},
    {"Conv2dOp", conv2d},
    {"Conv3dOp", conv3d},
    {"ConvTranspose2dOp", conv_transpose2d},
};
constinit const Table convolution_ops = convolution_rows;

}  // namespace tt::runtime::kernels

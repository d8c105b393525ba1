// Pooling of flattened NHWC activations, and resampling of images.
#include "kernels/convolution.h"

namespace tt::runtime::kernels {

namespace {

using Tensor = at::Tensor;
using Ints = std::vector<int64_t>;

struct Pool {
  Ints kernel, stride, dilation, padding;  // padding: [left, right, top, bottom]
  int64_t batch, height, width;
  bool ceil;
};

Pool read_pool(OpBuilder& op, Slot source) {
  const auto& a = op.attributes();
  Pool p{a.integers("kernel_size"), a.integers("stride"),      a.integers("dilation"),   {},
         a.integer("batch_size"),   a.integer("input_height"), a.integer("input_width"), a.flag("ceil_mode")};
  if (p.dilation.empty()) p.dilation = {1, 1};
  for (const Ints* values : {&p.kernel, &p.stride, &p.dilation}) {
    op.require(values->size() == 2, "kernel_size, stride and dilation must have two values each");
    for (int64_t value : *values)
      op.require(value > 0 && value < 1 << 20, "kernel_size, stride or dilation is out of range");
  }
  const Ints given = a.integers("padding");  // top, left, bottom, right
  op.require(given.size() == 2 || given.size() == 4, "padding must have two or four values");
  for (int64_t value : given) op.require(value >= 0 && value < 1 << 20, "padding is out of range");
  p.padding = given.size() == 2 ? Ints{given[1], given[1], given[0], given[0]}
                                : Ints{given[1], given[3], given[0], given[2]};
  op.require(p.batch > 0 && p.height > 0 && p.width > 0 && p.batch < kSizeLimit && p.height < kSizeLimit &&
                 p.width < kSizeLimit && !op.spec(source).shape.empty(),
             "batch_size, input_height or input_width is out of range");
  return p;
}

bool symmetric(const Pool& p) {
  return p.padding[0] == p.padding[1] && p.padding[2] == p.padding[3] && p.padding[0] * 2 <= p.kernel[1] &&
         p.padding[2] * 2 <= p.kernel[0];
}

// Checks the result's size before anything runs, so that a damaged binary does not make a huge padded input.
void check_size(OpBuilder& op, const Pool& p, Slot source, Slot out) {
  op.require(!op.spec(out).shape.empty(), "the result is a scalar");
  int64_t volume = p.batch * op.spec(out).shape.back();
  const int64_t padded[] = {p.height + p.padding[2] + p.padding[3], p.width + p.padding[0] + p.padding[1]};
  op.require_scratch(checked_volume({volume, padded[0], padded[1]}), {source, out});
  for (size_t i = 0; i < 2; ++i) {
    const int64_t size = padded[i];
    const int64_t room = size - p.dilation[i] * (p.kernel[i] - 1) - 1;
    op.require(room >= 0, "the kernel is larger than the padded input");
    int64_t count = (room + (p.ceil ? p.stride[i] - 1 : 0)) / p.stride[i] + 1;
    // With ceil_mode, a last window that would start in the padding after the input does not count. Uneven
    // padding is added to the input beforehand and counts as input.
    const int64_t end = symmetric(p) ? size - p.padding[3 - 2 * i] : size;
    if (p.ceil && (count - 1) * p.stride[i] >= end) --count;
    volume *= count;
  }
  op.require(volume == checked_volume(op.spec(out).shape),
             "the result has another number of elements than the pooling computes");
}

Ints torch_padding(const Pool& p) { return symmetric(p) ? Ints{p.padding[2], p.padding[0]} : Ints{0, 0}; }

Tensor max_pool(const Pool& p, Tensor x) {
  if (!symmetric(p)) x = at::constant_pad_nd(x, p.padding, -std::numeric_limits<double>::infinity());
  return at::max_pool2d(x, p.kernel, p.stride, torch_padding(p), p.dilation, p.ceil);
}

struct Average {
  bool count_pad;                  // whether padding counts as elements of a window
  std::optional<int64_t> divisor;  // divides the sum of each window, instead of the number of its elements
};

Average read_average(OpBuilder& op) {
  const auto extra = op.attributes().member("extra_params");
  if (!extra) return {false, std::nullopt};
  const Average average{extra->flag("count_include_pad"), extra->maybe_integer("divisor_override")};
  op.require(average.divisor.value_or(1) > 0, "divisor_override must be positive");
  return average;
}

// With uneven padding, the sum of each window is divided by the number of elements that count.
Tensor avg_pool(const Pool& p, const Tensor& x, const Average& by) {
  if (symmetric(p))
    return at::avg_pool2d(x, p.kernel, p.stride, torch_padding(p), p.ceil, by.count_pad, by.divisor);
  const auto mean = [&](const Tensor& t, double fill) {
    const Tensor padded = at::constant_pad_nd(t, p.padding, fill);
    return at::avg_pool2d(padded, p.kernel, p.stride, 0, p.ceil, true, by.divisor);
  };
  if (by.divisor) return mean(x, 0.0);
  const Tensor ones = at::ones({1, 1, p.height, p.width}, x.options());
  return mean(x, 0.0) / mean(ones, by.count_pad ? 1.0 : 0.0);
}

}  // namespace

static void pool2d(OpBuilder& op) {
  constexpr wire::Named<bool> takes_maximum[] = {{"AvgPool2d", false}, {"MaxPool2d", true}};
  const bool max = op.attributes().choose("type", takes_maximum);
  const Slot source = op.in("in"), out = op.out();
  const Pool p = read_pool(op, source);
  check_size(op, p, source, out);
  const Average by = max ? Average{} : read_average(op);
  op.compute(out, [=, shape = op.spec(out).shape](Frame& f) {
    const Tensor x = as_image(f[source], p.batch, p.height, p.width);
    return as_flat(max ? max_pool(p, x) : avg_pool(p, x, by), shape);
  });
}

static void max_pool2d_with_indices(OpBuilder& op) {
  const Slot source = op.in("in"), out = op.out("result"), positions = op.out("result_indices");
  const Pool p = read_pool(op, source);
  op.require(symmetric(p), "max pooling with indices needs symmetric padding");
  check_size(op, p, source, out);
  op.compute(out, [=, shape = op.spec(out).shape](Frame& f) {
    const Tensor x = as_image(f[source], p.batch, p.height, p.width);
    auto [values, indices] =
        at::max_pool2d_with_indices(x, p.kernel, p.stride, torch_padding(p), p.dilation, p.ceil);
    f.further = {indices};
    return as_flat(values, shape);
  });
  op.compute(positions, [shape = op.spec(positions).shape](Frame& f) {
    return as_flat(std::move(f.further[0]), shape);
  });
}

static void global_avg_pool2d(OpBuilder& op) {
  const Slot source = op.in("in"), out = op.out();
  op.require(op.spec(source).shape.size() == 4, "the input must be N x H x W x C");
  op.compute(out, [=](Frame& f) { return at::mean(f[source], at::IntArrayRef{1, 2}, true); });
}

static void upsample(OpBuilder& op) {
  constexpr wire::Named<bool> repeats[] = {{"nearest", true}, {"bilinear", false}};
  const bool nearest = op.attributes().choose("mode", repeats);
  const Slot source = op.in("in"), out = op.out();
  const auto factor = op.attributes().member("scale_factor");
  op.require(factor && op.spec(source).shape.size() == 4,
             "the input must be N x H x W x C, and scale_factor must be given");
  Ints scale = factor->integers("scale");
  if (!factor->integers("scale").size()) scale = {factor->integer("scale"), factor->integer("scale")};
  op.require(scale.size() == 2 && scale[0] > 0 && scale[1] > 0 && scale[0] < 4096 && scale[1] < 4096,
             "scale_factor must be one or two numbers from 1 to 4095");
  const auto& shape = op.spec(source).shape;
  const Ints size{shape[1] * scale[0], shape[2] * scale[1]};
  op.require(op.spec(out).shape == Ints{shape[0], size[0], size[1], shape[3]},
             "the result's shape is not that of the scaled input");
  op.compute(out, [=](Frame& f) {
    const Tensor x = f[source].permute({0, 3, 1, 2});
    const Tensor y = nearest ? at::upsample_nearest2d(x, size) : at::upsample_bilinear2d(x, size, false);
    return y.permute({0, 2, 3, 1}).contiguous();
  });
}

static constexpr Row pooling_rows[] = {
    {"GlobalAvgPool2dOp", global_avg_pool2d},
    {"MaxPool2dWithIndicesOp", max_pool2d_with_indices},
    {"Pool2dOp", pool2d},
    {"UpsampleOp", upsample},
};
constinit const Table pooling_ops = pooling_rows;

}  // namespace tt::runtime::kernels

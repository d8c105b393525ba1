// Softmax and normalizations.
#include "kernels/activations.h"
#include "kernels/kernels.h"

namespace tt::runtime::kernels {

namespace {

using Tensor = at::Tensor;

// An optional weight as a flat vector of the input's type.
Tensor flat(Frame& f, std::optional<Slot> slot, at::ScalarType type) {
  return slot ? f[*slot].reshape({-1}).to(type) : Tensor();
}

Tensor rms(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon) {
  const Tensor wide = x.to(at::kFloat);
  Tensor y = wide * at::rsqrt(at::mean(wide * wide, at::IntArrayRef{-1}, true) + epsilon);
  if (weight.defined()) y.mul_(weight);
  if (bias.defined()) y.add_(bias);
  return y;
}

// Checks that the statistics and weights of a batch norm have one value per channel, which is the second
// dimension.
void require_channels(OpBuilder& op, Slot source, std::initializer_list<std::optional<Slot>> vectors) {
  const auto& shape = op.spec(source).shape;
  op.require(shape.size() >= 2, "the input must have at least two dimensions");
  for (const auto& slot : vectors)
    op.require(!slot || checked_volume(op.spec(*slot).shape) == shape[1],
               "a statistic or weight does not have one value per channel");
}

}  // namespace

static void softmax(OpBuilder& op) {
  const Slot source = op.in("in"), out = op.out();
  const int64_t dim =
      op.dim(op.attributes().integer("dimension"), static_cast<int64_t>(op.spec(source).shape.size()));
  if (op.spec(source).dtype == op.spec(out).dtype && op.spec(source).shape == op.spec(out).shape)
    return op.write(out, [=](Frame& f) { at::_softmax_out(f[out], f[source], dim, false); });
  op.compute(out, [=](Frame& f) { return at::softmax(f[source], dim); });
}

static void layer_norm(OpBuilder& op) {
  const Slot source = op.in("input");
  const auto weight = op.maybe("weight"), bias = op.maybe("bias");
  const Slot out = op.out();
  const double epsilon = op.attributes().real("epsilon");
  op.compute(out, [=](Frame& f) {
    const Tensor& x = f[source];
    const auto type = x.scalar_type();
    return at::layer_norm(x, {x.size(-1)}, flat(f, weight, type), flat(f, bias, type), epsilon);
  });
}

static void rms_norm(OpBuilder& op) {
  const Slot source = op.in("input");
  const auto weight = op.maybe("weight"), bias = op.maybe("bias");
  const Slot out = op.out();
  const double epsilon = op.attributes().real("epsilon");
  op.compute(out, [=](Frame& f) {
    return rms(f[source], flat(f, weight, at::kFloat), flat(f, bias, at::kFloat), epsilon);
  });
}

// An RMS norm of the sum of two tensors, and an activation after it.
static void rms_norm_with_neighbours(OpBuilder& op) {
  const Slot source = op.in("input");
  const auto weight = op.maybe("weight"), bias = op.maybe("bias"), added = op.maybe("residual_input");
  const Slot out = op.out();
  const double epsilon = op.attributes().real("epsilon");
  const Activation activation = activation_named(std::string(op.attributes().text("activation")));
  op.require(!added || op.spec(*added).shape == op.spec(source).shape,
             "residual_input has another shape than the input");
  op.compute(out, [=](Frame& f) {
    const Tensor x = added ? f[source].to(at::kFloat) + f[*added] : f[source];
    const Tensor y = rms(x, flat(f, weight, at::kFloat), flat(f, bias, at::kFloat), epsilon);
    return activation.apply ? activation.apply(y) : y;
  });
}

static void batch_norm_inference(OpBuilder& op) {
  const Slot source = op.in("input"), mean = op.in("running_mean"), var = op.in("running_var");
  const Slot weight = op.in("weight"), bias = op.in("bias"), out = op.out();
  require_channels(op, source, {mean, var, weight, bias});
  const double epsilon = op.attributes().real("epsilon");
  op.compute(out, [=](Frame& f) {
    const auto wide = [&](Slot slot) { return f[slot].reshape({-1}).to(at::kFloat); };
    return at::batch_norm(f[source].to(at::kFloat), wide(weight), wide(bias), wide(mean), wide(var), false,
                          0.0, epsilon, false);
  });
}

static void batch_norm_training(OpBuilder& op) {
  const Slot source = op.in("input"), mean = op.in("running_mean"), var = op.in("running_var");
  const auto weight = op.maybe("weight"), bias = op.maybe("bias");
  const double epsilon = op.attributes().real("epsilon"), momentum = op.attributes().real("momentum");
  require_channels(op, source, {mean, var, weight, bias});
  const Slot out = op.out();
  op.compute(out, [=](Frame& f) {
    Tensor running_mean = f[mean].reshape({-1}).to(at::kFloat, false, true);
    Tensor running_var = f[var].reshape({-1}).to(at::kFloat, false, true);
    const Tensor y =
        at::batch_norm(f[source].to(at::kFloat), flat(f, weight, at::kFloat), flat(f, bias, at::kFloat),
                       running_mean, running_var, true, momentum, epsilon, false);
    f.further = {running_mean, running_var};
    return y;
  });
  op.update(mean, [=](Frame& f) { f[mean].copy_(f.further[0].reshape(f[mean].sizes())); });
  op.update(var, [=](Frame& f) { f[var].copy_(f.further[1].reshape(f[var].sizes())); });
}

static void group_norm(OpBuilder& op) {
  const Slot source = op.in("input");
  const auto weight = op.maybe("weight"), bias = op.maybe("bias");
  const Slot out = op.out();
  const int64_t groups = op.attributes().integer("num_groups");
  const double epsilon = op.attributes().real("epsilon");
  op.require(op.spec(source).shape.size() == 4 && groups > 0, "the input must be N x 1 x H*W x C");
  op.compute(out, [=](Frame& f) {
    const Tensor x = f[source].permute({0, 3, 1, 2}).to(at::kFloat);  // channels second
    return at::group_norm(x, groups, flat(f, weight, at::kFloat), flat(f, bias, at::kFloat), epsilon)
        .permute({0, 2, 3, 1})
        .contiguous();
  });
}

static constexpr Row normalization_rows[] = {
    {"BatchNormInferenceOp", batch_norm_inference},
    {"BatchNormTrainingOp", batch_norm_training},
    {"DitRMSNormUnaryFusedOp", rms_norm_with_neighbours},
    {"GroupNormOp", group_norm},
    {"LayerNormOp", layer_norm},
    {"RMSNormOp", rms_norm},
    {"SoftmaxOp", softmax},
};
constinit const Table normalization_ops = normalization_rows;

}  // namespace tt::runtime::kernels

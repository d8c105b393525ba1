// Element-wise ops with two or three operands.
#include <ATen/ExpandUtils.h>

#include "kernels/activations.h"
#include "kernels/kernels.h"
#include "kernels/matrix_unit.h"

namespace tt::runtime::kernels {

namespace {

using Tensor = at::Tensor;
using BinaryWrite = Tensor& (*)(Tensor& out, const Tensor& a, const Tensor& b);
using Compute = Tensor (*)(const Tensor& a, const Tensor& b);
using Combine = std::function<Tensor(const Tensor& a, const Tensor& b)>;

// Makes a step over `count` contiguous float32 elements. `otherwise` is used if an operand is not contiguous.
using SmallLoop = StepFn (*)(Slot a, Slot b, Slot out, int64_t count, BinaryWrite otherwise);

// `write` is used if the result's type can hold the type that the operands promote to, otherwise `compute`.
struct BinaryRow {
  BinaryWrite write;
  Compute compute;
  bool boolean = false;       // the result is 0 or 1, which every type can hold
  bool floats_only = false;   // `write` is for results of float types
  SmallLoop small = nullptr;  // faster than `write` for few elements
  Compute exact = nullptr;    // as the matrix unit of a chip computes it for bf16
};

Tensor exact_sum(const Tensor& a, const Tensor& b) { return matrix_unit::add(a, b, false); }
Tensor exact_difference(const Tensor& a, const Tensor& b) { return matrix_unit::add(a, b.neg(), false); }

Tensor logical_shift_right(const Tensor& a, const Tensor& b) {
  const Tensor bits = a.scalar_type() == at::kInt ? a.to(at::kLong).bitwise_and(0xffffffffLL) : a;
  return at::where(b < 32, bits.bitwise_right_shift(b), 0).to(a.scalar_type());
}

Tensor divide(const Tensor& a, const Tensor& b) {
  const bool integers =
      at::isIntegralType(a.scalar_type(), true) && at::isIntegralType(b.scalar_type(), true);
  return integers ? at::div(a, b, "trunc") : at::div(a, b);
}

// The exponent if it is one number for all elements, and the power is a square or a cube of floats. ATen
// computes these as products, in a quarter of the time of other powers.
std::optional<double> product_power(const Tensor& x, const Tensor& exponent) {
  const bool one = exponent.numel() == 1 && exponent.dim() <= x.dim();
  if (!one || !x.is_floating_point() || x.scalar_type() != exponent.scalar_type()) return std::nullopt;
  const double number = exponent.item<double>();
  return number == 2 || number == 3 ? std::optional(number) : std::nullopt;
}

Tensor power(const Tensor& x, const Tensor& exponent) {
  const auto number = product_power(x, exponent);
  return number ? at::pow(x, *number) : at::pow(x, exponent);
}

Tensor& write_power(Tensor& out, const Tensor& x, const Tensor& exponent) {
  const auto number = product_power(x, exponent);
  return number ? at::pow_out(out, x, *number) : at::pow_out(out, x, exponent);
}

constexpr int64_t kSmall =
    1 << 14;  // up to this many elements, a plain loop is faster than a dispatched kernel

template <typename Function>
StepFn small_loop(Slot a, Slot b, Slot out, int64_t count, BinaryWrite otherwise) {
  return [=](Frame& f) {
    const Tensor &x = f[a], &y = f[b];
    if (!x.is_contiguous() || !y.is_contiguous()) {
      otherwise(f[out], x, y);
      return;
    }
    const auto *left = static_cast<const float*>(x.const_data_ptr()),
               *right = static_cast<const float*>(y.const_data_ptr());
    auto* result = static_cast<float*>(f[out].mutable_data_ptr());
    for (int64_t i = 0; i < count; ++i) result[i] = Function()(left[i], right[i]);
  };
}

#define WRITE(name) \
  [](Tensor& o, const Tensor& a, const Tensor& b) -> Tensor& { return at::name##_out(o, a, b); }
#define ROW(name) \
  .write = WRITE(name), .compute = [](const Tensor& a, const Tensor& b) { return at::name(a, b); }

// The rows by the names of EltwiseBinaryOpType. A division of integers truncates; ATen has no `out` function
// with this signature for it.
constexpr wire::Named<BinaryRow> binary_rows[] = {
    {"Add", {ROW(add), .small = small_loop<std::plus<float>>, .exact = exact_sum}},
    {"Divide", {.write = WRITE(div), .compute = divide, .floats_only = true}},
    {"Equal", {ROW(eq), .boolean = true}},
    {"GreaterEqual", {ROW(ge), .boolean = true}},
    {"GreaterThan", {ROW(gt), .boolean = true}},
    {"LessEqual", {ROW(le), .boolean = true}},
    {"LessThan", {ROW(lt), .boolean = true}},
    {"LogicalAnd", {ROW(logical_and), .boolean = true}},
    {"LogicalOr", {ROW(logical_or), .boolean = true}},
    {"LogicalRightShift", {.write = nullptr, .compute = logical_shift_right}},
    {"LogicalXor", {ROW(logical_xor), .boolean = true}},
    {"Multiply", {ROW(mul), .small = small_loop<std::multiplies<float>>}},
    {"NotEqual", {ROW(ne), .boolean = true}},
    {"Subtract", {ROW(sub), .small = small_loop<std::minus<float>>, .exact = exact_difference}},
};

// The rows by the names of EltwiseBinaryCompositeOpType.
constexpr wire::Named<BinaryRow> composite_binary[] = {
    {"Atan2", {ROW(atan2)}},
    {"BitwiseAnd", {ROW(bitwise_and)}},
    {"BitwiseOr", {ROW(bitwise_or)}},
    {"BitwiseRightShift", {ROW(bitwise_right_shift)}},
    {"BitwiseXor", {ROW(bitwise_xor)}},
    {"LogicalLeftShift", {ROW(bitwise_left_shift)}},
    {"Maximum", {ROW(maximum)}},
    {"Minimum", {ROW(minimum)}},
    {"Pow", {.write = write_power, .compute = power}},
    {"Remainder", {ROW(remainder)}},
};
#undef ROW
#undef WRITE

bool all_small_floats(OpBuilder& op, Slot a, Slot b, Slot out) {
  const auto plain = [&](Slot s) {
    return op.spec(s).dtype == DataType::Float32 && op.spec(s).shape == op.spec(out).shape;
  };
  return plain(a) && plain(b) && plain(out) && checked_volume(op.spec(out).shape) <= kSmall;
}

StepFn choose_write(OpBuilder& op, const BinaryRow& row, Slot a, Slot b, Slot out) {
  if (row.small && all_small_floats(op, a, b, out))
    return row.small(a, b, out, checked_volume(op.spec(out).shape), row.write);
  return [=, write = row.write](Frame& f) { write(f[out], f[a], f[b]); };
}

// Whether the row's `write` can be used for these types.
bool fits(const BinaryRow& row, DataType a, DataType b, DataType out) {
  if (!row.write) return false;
  if (row.boolean) return true;
  if (row.floats_only) return is_float(out);
  return c10::canCast(c10::promoteTypes(storage_type(a), storage_type(b)), storage_type(out));
}

// One function that applies all activations of a field in order, and gives values of `dtype`. It is empty if
// the field has none.
std::function<Tensor(const Tensor&)> fused_activations(OpBuilder& op, const char* field, DataType dtype) {
  std::vector<std::function<Tensor(const Tensor&)>> all;
  for (const wire::Record& unary : op.attributes().records(field))
    if (auto apply = activation_of(unary).apply) all.push_back(std::move(apply));
  if (all.empty()) return nullptr;
  return [=, type = storage_type(dtype)](const Tensor& value) {
    Tensor result = value.to(type);
    for (const auto& apply : all) result = apply(result).to(type);
    return result;
  };
}

// The row's function with the op's fused activations of each operand and of the result. It is empty if the op
// has no fused activations.
Combine with_activations(OpBuilder& op, const BinaryRow& row, Slot a, Slot b, Slot out) {
  const auto left = fused_activations(op, "input_tensor_a_activations", op.spec(a).dtype),
             right = fused_activations(op, "input_tensor_b_activations", op.spec(b).dtype),
             after = fused_activations(op, "activations", op.spec(out).dtype);
  if (!left && !right && !after) return nullptr;
  return [=, compute = row.compute](const Tensor& x, const Tensor& y) {
    const Tensor result = compute(left ? left(x) : x, right ? right(y) : y);
    return after ? after(result) : result;
  };
}

void build_binary(OpBuilder& op, BinaryRow row) {
  const Slot a = op.in("lhs"), b = op.in("rhs"), out = op.out();
  op.require_broadcast({a, b}, out);
  const auto narrow = [&](Slot s) { return op.spec(s).dtype == DataType::BFloat16; };
  if (op.exact() && row.exact && narrow(a) && narrow(b) && narrow(out))
    row.compute = row.exact, row.write = nullptr;
  if (const auto combine = with_activations(op, row, a, b, out))
    return op.compute(out, [=](Frame& f) { return combine(f[a], f[b]); });
  if (fits(row, op.spec(a).dtype, op.spec(b).dtype, op.spec(out).dtype))
    return op.write(out, choose_write(op, row, a, b, out));
  op.compute(out, [=, compute = row.compute](Frame& f) { return compute(f[a], f[b]); });
}

}  // namespace

static void binary(OpBuilder& op) { build_binary(op, op.attributes().choose("type", binary_rows)); }

static void binary_composite(OpBuilder& op) {
  build_binary(op, op.attributes().choose("type", composite_binary));
}

static void power_scalar(OpBuilder& op) {
  constexpr wire::Named<Tensor (*)(const Tensor&, const at::Scalar&)> functions[] = {
      {"PowScalar", [](const Tensor& x, const at::Scalar& y) { return at::pow(x, y); }}};
  const auto function = op.attributes().choose("type", functions);
  const Slot a = op.in("lhs"), out = op.out();
  const auto exponent = op.attributes().member("rhs");
  op.require(exponent.has_value(), "rhs is missing");
  const bool integral = std::string_view(exponent->type_name()).ends_with("IntegralType");
  const at::Scalar number =
      integral ? at::Scalar(exponent->integer("value")) : at::Scalar(exponent->real("value"));
  op.compute(out, [=](Frame& f) { return function(f[a], number); });
}

static void where(OpBuilder& op) {
  const Slot condition = op.in("first"), yes = op.in("second"), no = op.in("third"), out = op.out();
  op.require_broadcast({condition, yes, no}, out);
  op.compute(out, [=](Frame& f) { return at::where(f[condition] != 0, f[yes], f[no]); });
}

namespace {

struct Conversion {
  bool from_steps, to_steps;  // whether input and result are integers that count steps, or real numbers
};

// The conversions by the names of EltwiseQuantizationOpType.
constexpr wire::Named<Conversion> conversions[] = {
    {"Dequantize", {true, false}}, {"Quantize", {false, true}}, {"Requantize", {true, true}}};

// A scale or zero point: one number, or a tensor with one number per position of an axis.
struct Parameter {
  double number = 0;
  std::optional<Slot> tensor;
  Tensor value(Frame& f, int64_t axis, int64_t rank) const {
    if (!tensor) return at::scalar_tensor(number);
    std::vector<int64_t> shape(rank, 1);
    shape[axis] = f[*tensor].numel();
    return f[*tensor].reshape(shape).to(at::kFloat);
  }
};

// `size` is the size of the axis, or 0 for a scalar.
Parameter read_parameter(OpBuilder& op, const wire::Record& owner, const char* field, int64_t size) {
  const auto member = owner.member(field);
  op.require(member.has_value(), "a quantization parameter is missing");
  for (const char* name : {"scale", "zero_point"}) {
    if (!member->has(name)) continue;
    if (auto ref = member->record(name)) {
      const Parameter parameter{0, op.operand(*ref)};
      op.require(size > 0 && checked_volume(op.spec(*parameter.tensor).shape) == size,
                 "a quantization parameter does not have a value per element of the axis");
      return parameter;
    }
    return {member->real(name), std::nullopt};
  }
  return {};
}

}  // namespace

static void quantization(OpBuilder& op) {
  const Conversion conversion = op.attributes().choose("type", conversions);
  const Slot source = op.in("in");
  const auto params = op.attributes().member("params");
  op.require(params.has_value(), "params are missing");
  const auto rank = static_cast<int64_t>(op.spec(source).shape.size());
  const int64_t axis = op.dim(op.attributes().maybe_integer("axis").value_or(0), rank);
  const int64_t size = rank ? op.spec(source).shape[axis] : 0;
  const bool again = conversion.from_steps && conversion.to_steps;
  const Parameter scale = read_parameter(op, *params, again ? "in_scale" : "scale", size);
  const Parameter zero = read_parameter(op, *params, again ? "in_zero_point" : "zero_point", size);
  const Parameter new_scale = again ? read_parameter(op, *params, "out_scale", size) : scale;
  const Parameter new_zero = again ? read_parameter(op, *params, "out_zero_point", size) : zero;
  const Slot out = op.out();
  op.compute(out, [=](Frame& f) {
    Tensor real = f[source].to(at::kFloat);
    if (conversion.from_steps) real = (real - zero.value(f, axis, rank)) * scale.value(f, axis, rank);
    if (!conversion.to_steps) return real;
    return at::round(real / new_scale.value(f, axis, rank)) + new_zero.value(f, axis, rank);
  });
}

static void gelu_backward(OpBuilder& op) {
  constexpr wire::Named<Tensor (*)(const Tensor&, const Tensor&, std::string_view)> functions[] = {
      {"GeluBW", [](const Tensor& grad, const Tensor& input, std::string_view approximate) {
         return at::gelu_backward(grad, input, approximate);
       }}};
  const auto function = op.attributes().choose("type", functions);
  const Slot grad = op.in("grad"), input = op.in("input"), out = op.out();
  op.require_broadcast({grad, input}, out);
  constexpr wire::Named<std::string_view> algorithms[] = {{"none", "none"}, {"tanh", "tanh"}};
  const std::string_view approximate = op.attributes().choose("approximate", algorithms);
  op.compute(out, [=](Frame& f) { return function(f[grad], f[input], approximate); });
}

static constexpr Row elementwise_rows[] = {
    {"Atan2Op", binary_composite},
    {"EltwiseBinaryCompositeOp", binary_composite},
    {"EltwiseBinaryCompositeScalarOp", power_scalar},
    {"EltwiseBinaryOp", binary},
    {"EltwiseQuantizationOp", quantization},
    {"EltwiseTernaryWhereOp", where},
    {"ExperimentalEltwiseBinaryBackwardOp", gelu_backward},
};
constinit const Table elementwise_ops = elementwise_rows;

}  // namespace tt::runtime::kernels

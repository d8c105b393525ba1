// Ops that create tensors: fills, sequences, constants of the binary, random numbers.
#include <ATen/CPUGeneratorImpl.h>

#include "kernels/kernels.h"

namespace tt::runtime::kernels {

namespace {

void fill(OpBuilder& op, double value) {
  const Slot out = op.out();
  op.write(out, [out, value](Frame& f) { f[out].fill_(value); });
}

size_t element_size(DataType dtype) {
  switch (dtype) {
    case DataType::Float32:
    case DataType::UInt32:
    case DataType::Int32:
      return 4;
    case DataType::BFloat16:
    case DataType::UInt16:
      return 2;
    case DataType::UInt8:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

static at::Generator seeded(int64_t seed) {
  return at::detail::createCPUGenerator(static_cast<uint64_t>(seed));
}

std::optional<at::Generator> generator_of(int64_t seed) {
  if (seed) return seeded(seed);
  return std::nullopt;
}

static void full(OpBuilder& op) {
  const auto value = op.attributes().member("fill_value");
  op.require(value.has_value(), "fill_value is missing");
  const bool integral = std::string_view(value->type_name()).ends_with("IntegralType");
  fill(op, integral ? static_cast<double>(value->integer("value")) : value->real("value"));
}

static void named_full(OpBuilder& op) {
  constexpr wire::Named<double> values[] = {{"Zeros", 0.0}, {"Ones", 1.0}};
  fill(op, op.attributes().choose("type", values));
}

static void arange(OpBuilder& op) {
  const double start = op.attributes().real("start"), step = op.attributes().real("step");
  const Slot out = op.out();
  op.require(op.spec(out).shape.size() == 1, "the result must have one dimension");
  const int64_t count = op.spec(out).shape[0];
  op.compute(out, [=](Frame&) { return at::arange(count, at::kDouble).mul_(step).add_(start); });
}

static void constant(OpBuilder& op) {
  const auto bytes = op.attributes().bytes("input");
  const DataType dtype = decode_dtype(op.attributes(), "input_dtype");
  const Slot out = op.out();
  const auto& shape = op.spec(out).shape;
  const auto volume = static_cast<size_t>(checked_volume(shape));
  op.require(element_size(dtype) && bytes.size() == volume * element_size(dtype),
             "the size of the constant's bytes is not that of its shape and type");
  // The bytes belong to the binary, which outlives the plan. They are copied, because it is possible that
  // they are not aligned.
  const HostBuffer source{const_cast<uint8_t*>(bytes.data()), shape, {}, dtype};
  op.write(out, [=](Frame& f) {
    at::Tensor copy = at::empty({static_cast<int64_t>(bytes.size())}, at::kByte);
    std::copy(bytes.begin(), bytes.end(), copy.data_ptr<uint8_t>());
    f[out].copy_(copy.view(host_type(source.dtype)).view(source.shape));
  });
}

static void empty(OpBuilder& op) { fill(op, 0.0); }

static void random(OpBuilder& op) {
  const double low = op.attributes().real("low"), high = op.attributes().real("high");
  const int64_t seed = op.attributes().integer("seed");
  const Slot out = op.out();
  op.compute(out, [=, shape = op.spec(out).shape](Frame&) {
    return at::empty(shape, at::kFloat).uniform_(low, high, generator_of(seed));
  });
}

static void dropout(OpBuilder& op) {
  const Slot source = op.in("in"), out = op.out();
  const double keep = 1.0 - op.attributes().real("prob"), scale = op.attributes().real("scale");
  const int64_t seed = op.attributes().integer("seed");
  op.require(keep >= 0.0 && keep <= 1.0, "prob must be between 0 and 1");
  op.compute(out, [=](Frame& f) {
    return f[source] * at::empty(f[source].sizes(), at::kFloat).bernoulli_(keep, seeded(seed)) * scale;
  });
}

static constexpr Row creation_rows[] = {
    {"ArangeOp", arange}, {"ConstantOp", constant},    {"DropoutOp", dropout}, {"EmptyOp", empty},
    {"FullOp", full},     {"NamedFullOp", named_full}, {"RandOp", random},
};
constinit const Table creation_ops = creation_rows;

}  // namespace tt::runtime::kernels

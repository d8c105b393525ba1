// Runs a program of one input and one result, whose op "mylib::doubled.default" has its kernel here:
// run_kernel model.ttnn. The input is 0, 1, 2, ... Prints the sum of the result.
#include <tt/runtime/runtime.h>

#include <cstdio>
#include <numeric>
#include <vector>

using namespace tt::runtime;

static int64_t count(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

static void doubled(const CustomCall& call) {
  const auto* x = static_cast<const float*>(call.inputs.at(0).data);
  auto* y = static_cast<float*>(call.outputs.at(0).data);
  for (int64_t i = 0; i < count(call.outputs[0].shape); ++i) {
    if (x[i] < 0) throw std::domain_error("a negative number");
    y[i] = 2 * x[i];
  }
}

int main(int argc, char** argv) try {
  if (argc != 2) return std::fprintf(stderr, "usage: %s model.ttnn\n", argv[0]), 2;
  register_kernel("mylib::doubled.default", doubled);
  Executable executable(Binary::load_file(argv[1]), 0, Device::open());
  const auto &in = executable.info().inputs.at(0).shape, &out = executable.info().outputs.at(0).shape;
  std::vector<float> x(count(in)), y(count(out));
  std::iota(x.begin(), x.end(), 0.0f);
  const std::vector<Input> inputs = {row_major(x.data(), in, DataType::Float32)};
  const std::vector<HostBuffer> outputs = {row_major(y.data(), out, DataType::Float32)};
  executable.run(inputs, outputs);
  std::printf("sum %.9g\n", std::accumulate(y.begin(), y.end(), 0.0));
} catch (const Error& error) {
  std::fprintf(stderr, "%s: %s\n", error.class_name(), error.what());
  return 1;
}

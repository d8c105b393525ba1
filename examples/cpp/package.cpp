// Runs a package on the emulated device: run_package model.ttpkg
// Each input is 0, 1/7, ..., 6/7, 0, ... Prints the name, the shape and the sum of each result.
#include <tt/runtime/runtime.h>

#include <cstdio>
#include <list>
#include <numeric>

using namespace tt::runtime;

int main(int argc, char** argv) try {
  if (argc != 2) return std::fprintf(stderr, "usage: %s model.ttpkg\n", argv[0]), 2;
  Package package = Package::load(argv[1], Device::open());
  std::list<std::vector<float>> memory;
  const auto allocate = [&](const NamedTensor& tensor) {
    size_t count = 1;
    for (int64_t size : tensor.shape) count *= size;
    auto& values = memory.emplace_back(count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 7) / 7;
    return row_major(values.data(), tensor.shape, DataType::Float32);
  };
  std::map<std::string, HostBuffer> inputs, outputs;
  for (const NamedTensor& tensor : package.inputs()) inputs[tensor.name] = allocate(tensor);
  for (const NamedTensor& tensor : package.outputs()) outputs[tensor.name] = allocate(tensor);
  package.run(inputs, outputs);
  auto values = std::next(memory.begin(), inputs.size());
  for (const NamedTensor& tensor : package.outputs()) {
    const double sum = std::accumulate(values->begin(), values->end(), 0.0);
    std::printf("%s %s sum %.9g\n", tensor.name.c_str(), describe(tensor.shape).c_str(), sum);
    ++values;
  }
} catch (const Error& error) {
  return std::fprintf(stderr, "%s: %s\n", error.class_name(), error.what()), 1;
}

// Runs a package on the emulated device: run_package model.ttpkg
// Each input is 0, 1/7, ..., 6/7, 0, ..., or 0, 1, ..., 6, 0, ... for integers. Booleans are false for 0.
// Prints the name, the shape and the sum of each result.
#include <cstdio>
#include <list>

#include "numbers.h"

using namespace tt::runtime;

int main(int argc, char** argv) try {
  if (argc != 2) return std::fprintf(stderr, "usage: %s model.ttpkg\n", argv[0]), 2;
  Package package = Package::load(argv[1], Device::open());
  std::list<Numbers> memory;
  std::map<std::string, HostBuffer> inputs, outputs;
  for (const NamedTensor& tensor : package.inputs()) {
    memory.emplace_back(tensor).fill();
    inputs[tensor.name] = memory.back().buffer;
  }
  for (const NamedTensor& tensor : package.outputs())
    outputs[tensor.name] = memory.emplace_back(tensor).buffer;
  package.run(inputs, outputs);
  auto result = std::next(memory.begin(), inputs.size());
  for (const NamedTensor& tensor : package.outputs())
    std::printf("%s %s sum %.9g\n", tensor.name.c_str(), describe(tensor.shape).c_str(), (result++)->sum());
} catch (const Error& error) {
  return std::fprintf(stderr, "%s: %s\n", error.class_name(), error.what()), 1;
}

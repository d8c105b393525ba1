// Runs a TTNN binary on the emulated device: run_ttnn model.ttnn
// Float inputs are 0, 1/7, ..., 6/7, 0, ...; integer inputs are ones.
// Prints the sum and the last value of each result.
#include <tt/runtime/runtime.h>

#include <cstdio>
#include <numeric>
#include <vector>

using namespace tt::runtime;

// Row-major memory for a tensor of the program: int32 for integer inputs, float32 for all others.
struct Memory {
  Memory(const TensorSpec& spec, bool integers) : buffer{nullptr, spec.shape, spec.shape, DataType::Float32} {
    int64_t count = 1;
    for (size_t i = spec.shape.size(); i-- > 0; count *= spec.shape[i]) buffer.strides[i] = count;
    for (int64_t i = 0; i < count; ++i) floats.push_back(static_cast<float>(i % 7) / 7);
    buffer.data = floats.data();
    if (!integers) return;
    buffer.dtype = DataType::Int32;
    words.assign(count, 1);
    buffer.data = words.data();
  }
  std::vector<float> floats;
  std::vector<int32_t> words;
  HostBuffer buffer;
};

int main(int argc, char** argv) try {
  if (argc != 2) return std::fprintf(stderr, "usage: %s model.ttnn\n", argv[0]), 2;
  const Device device = Device::open();
  Executable executable(Binary::load_file(argv[1]), 0, device);
  std::vector<Memory> inputs, outputs;
  for (const auto& spec : executable.info().inputs)
    inputs.emplace_back(spec, spec.dtype >= DataType::UInt32 && spec.dtype <= DataType::Int32);
  for (const auto& spec : executable.info().outputs) outputs.emplace_back(spec, false);
  std::vector<Input> arguments;
  std::vector<HostBuffer> results;
  for (auto& input : inputs) arguments.emplace_back(input.buffer);
  for (auto& output : outputs) results.push_back(output.buffer);
  executable.run(arguments, results);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& values = outputs[i].floats;
    std::printf("output %s sum %.9g last %.9g\n", describe(executable.info().outputs[i]).c_str(),
                std::accumulate(values.begin(), values.end(), 0.0), values.empty() ? 0.0 : values.back());
  }
  std::printf("DRAM peak %lld bytes\n", static_cast<long long>(executable.memory().dram_peak));
} catch (const Error& error) {
  std::fprintf(stderr, "%s: %s\n", error.class_name(), error.what());
  return 1;
}

// Runs a TTNN binary on the emulated device: run_ttnn model.ttnn
// Inputs count up in sevenths (integers are ones); printed are the results, with their sum and last value,
// and the memory that they took.
#include <tt/runtime/runtime.h>

#include <cstdio>
#include <vector>

using namespace tt::runtime;

// Row-major float32 memory for a tensor of the program (integers are accepted as int32).
struct Memory {
  explicit Memory(const TensorSpec& spec)
      : buffer{nullptr, spec.shape, std::vector<int64_t>(spec.shape.size(), 1), {}} {
    int64_t count = 1;
    for (size_t i = spec.shape.size(); i-- > 0; count *= spec.shape[i]) buffer.strides[i] = count;
    const bool integers = spec.dtype >= DataType::UInt32 && spec.dtype <= DataType::Int32;
    buffer.dtype = integers ? DataType::Int32 : DataType::Float32;
    if (integers)
      words.assign(count, 1);
    else
      for (int64_t i = 0; i < count; ++i) floats.push_back(static_cast<float>(i % 7) / 7);
    buffer.data = integers ? static_cast<void*>(words.data()) : floats.data();
  }
  double at(size_t i) const { return words.empty() ? floats[i] : words[i]; }
  size_t size() const { return words.empty() ? floats.size() : words.size(); }
  std::vector<float> floats;
  std::vector<int32_t> words;
  HostBuffer buffer;
};

int main(int argc, char** argv) try {
  if (argc != 2) return std::fprintf(stderr, "usage: %s model.ttnn\n", argv[0]), 2;
  const Binary binary = Binary::load_file(argv[1]);
  Device device = Device::open();
  Executable executable(binary, 0, device);
  std::vector<Memory> inputs(executable.info().inputs.begin(), executable.info().inputs.end());
  std::vector<Memory> outputs(executable.info().outputs.begin(), executable.info().outputs.end());
  std::vector<Input> arguments;
  std::vector<HostBuffer> results;
  for (auto& input : inputs) arguments.emplace_back(input.buffer);
  for (auto& output : outputs) results.push_back(output.buffer);
  executable.run(arguments, results);
  for (size_t i = 0; i < outputs.size(); ++i) {
    double sum = 0;
    for (size_t k = 0; k < outputs[i].size(); ++k) sum += outputs[i].at(k);
    std::printf("output %s sum %.9g last %.9g\n", describe(executable.info().outputs[i]).c_str(), sum,
                outputs[i].size() ? outputs[i].at(outputs[i].size() - 1) : 0);
  }
  std::printf("DRAM peak %lld bytes\n", static_cast<long long>(executable.memory().dram_peak));
} catch (const Error& error) {
  std::fprintf(stderr, "%s: %s\n", error.class_name(), error.what());
  return 1;
}

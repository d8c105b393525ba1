// Runs a TTNN binary on the emulated device: run_ttnn model.ttnn
// Inputs are filled with ones; the shapes of the results and the memory they took are printed.
#include <tt/runtime/runtime.h>

#include <cstdio>
#include <vector>

using namespace tt::runtime;

// Row-major float32 memory for a tensor of the program (integers are accepted as int32).
struct Memory {
  explicit Memory(const TensorSpec& spec) : buffer{nullptr, spec.shape, std::vector<int64_t>(spec.shape.size(), 1), {}} {
    int64_t count = 1;
    for (size_t i = spec.shape.size(); i-- > 0; count *= spec.shape[i]) buffer.strides[i] = count;
    const bool integers = spec.dtype >= DataType::UInt32 && spec.dtype <= DataType::Int32;
    buffer.dtype = integers ? DataType::Int32 : DataType::Float32;
    if (integers) words.assign(count, 1);
    else floats.assign(count, 1.0f);
    buffer.data = integers ? static_cast<void*>(words.data()) : floats.data();
  }
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
  for (const auto& spec : executable.info().outputs) std::printf("output %s\n", describe(spec).c_str());
  std::printf("DRAM peak %lld bytes\n", static_cast<long long>(executable.memory().dram_peak));
} catch (const Error& error) {
  std::fprintf(stderr, "%s: %s\n", error.class_name(), error.what());
  return 1;
}

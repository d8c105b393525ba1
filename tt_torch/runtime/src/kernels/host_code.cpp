// Functions that tt-mlir's compiler hoisted to the host, as machine code inside the binary. This code has all
// rights of the process, so a device runs it only if it was opened with allow_host_code.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "kernels/kernels.h"

namespace tt::runtime::kernels {

namespace {

// The tensors of the calling convention of hoisted functions, as in tt-mlir's runtime.
struct WrappedTensor {
  void* base;
  void* aligned;
  int64_t offset;
  int64_t* sizes_then_strides;
};
using Function = WrappedTensor* (*)(WrappedTensor*);

struct MemoryFile {
  const int descriptor = memfd_create("tt_host_code", MFD_CLOEXEC);
  ~MemoryFile() { close(descriptor); }  // does nothing if there is no file
};

std::shared_ptr<void> load_library(OpBuilder& op, std::span<const uint8_t> image) {
  const auto file = std::make_shared<MemoryFile>();
  const int descriptor = file->descriptor;
  op.require(write(descriptor, image.data(), image.size()) == static_cast<ssize_t>(image.size()),
             "the host library cannot be written to memory");
  void* handle = dlopen(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) op.invalid(std::string("the host library cannot be loaded: ") + dlerror());
  // The loader identifies libraries by path. So the descriptor stays open while the library is loaded:
  // another library with the same descriptor would have the same path.
  return {handle, [file](void* library) { dlclose(library); }};
}

struct Result {
  Slot slot;
  std::vector<int64_t> shape;
  DataType dtype;
};

std::vector<at::Tensor> call(Function function, const std::vector<at::Tensor>& inputs,
                             const std::vector<Result>& results) {
  std::vector<std::vector<int64_t>> layouts;
  std::vector<WrappedTensor> arguments;
  for (const at::Tensor& input : inputs) {
    layouts.push_back(input.sizes().vec());
    layouts.back().insert(layouts.back().end(), input.strides().begin(), input.strides().end());
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    arguments.push_back({inputs[i].data_ptr(), inputs[i].data_ptr(), 0, layouts[i].data()});
  WrappedTensor* returned = function(arguments.data());
  std::vector<at::Tensor> values;
  for (size_t i = 0; i < results.size(); ++i) {
    const at::ScalarType type = host_type(results[i].dtype);
    char* data = static_cast<char*>(returned[i].aligned) +
                 returned[i].offset * static_cast<int64_t>(c10::elementSize(type));
    values.push_back(at::from_blob(data, results[i].shape, at::TensorOptions(type))
                         .to(storage_type(results[i].dtype), false, true));
    std::free(returned[i].base);
  }
  std::free(returned[0].sizes_then_strides);
  std::free(returned);
  return values;
}

}  // namespace

static void host_function(OpBuilder& op) {
  if (custom_op(op)) return;
  if (!op.planner().options.host_code)
    throw Error(ErrorKind::UnsupportedBinary,
                "the binary contains machine code for the host (CpuOp); if you trust the binary, open the "
                "device with allow_host_code to run it");
  const auto library = load_library(op, op.planner().library(op.attributes().integer("dylib_id")));
  const auto function = reinterpret_cast<Function>(
      dlsym(library.get(), std::string(op.attributes().text("func_name")).c_str()));
  op.require(function != nullptr, "the host library does not have the function");
  const std::vector<Slot> inputs = op.ins("ins");
  std::vector<DataType> types;
  for (Slot slot : inputs) types.push_back(op.spec(slot).dtype);
  std::vector<Result> results;
  for (Slot slot : op.outs("outs")) results.push_back({slot, op.spec(slot).shape, op.spec(slot).dtype});
  op.require(!results.empty(), "the host function has no results");
  for (size_t i = 0; i < results.size(); ++i) {
    op.compute(results[i].slot, [=](Frame& f) {
      if (i == 0) {
        std::vector<at::Tensor> arguments;
        for (size_t k = 0; k < inputs.size(); ++k)
          arguments.push_back(f[inputs[k]].to(host_type(types[k])).contiguous());
        f.further = call(function, arguments, results);
      }
      static_cast<void>(library);  // keeps the library loaded as long as this step exists
      return std::exchange(f.further[i], at::Tensor());
    });
  }
}

static constexpr Row host_code_rows[] = {
    {"CpuOp", host_function},
};
constinit const Table host_code_ops = host_code_rows;

}  // namespace tt::runtime::kernels

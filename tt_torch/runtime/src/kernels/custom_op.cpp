// Ops whose kernels the process has registered. They are stored as a CpuOp without a library: its function
// name is a prefix, the name of the op, and the op's arguments as JSON.
#include "tt/runtime/custom_op.h"

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <mutex>

#include "failure.h"
#include "kernels/kernels.h"

namespace tt::runtime {

namespace {

constexpr std::string_view kPrefix = "tt_torch.kernel ";
constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:.";

struct Registered {
  CustomKernel run;
  uint64_t number;  // of the registration, unique in the process
};

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const Registered>, std::less<>> kernels;
  uint64_t count = 0;
};

// It is never deleted, because kernels may belong to an interpreter that ends before this library.
Registry& registry() {
  static auto* found = new Registry;
  return *found;
}

std::shared_ptr<const Registered> find(const std::string& name) {
  std::lock_guard lock(registry().mutex);
  const auto found = registry().kernels.find(name);
  if (found != registry().kernels.end()) return found->second;
  throw Error(ErrorKind::KernelMissing,
              "the program has the op " + name +
                  ", and this process has no kernel of it; import the package that registers it before this "
                  "program is loaded");
}

DataType plain(DataType dtype) { return is_block_float(dtype) ? DataType::BFloat16 : dtype; }

HostBuffer buffer_of(const at::Tensor& tensor, DataType dtype) {
  return row_major(tensor.data_ptr(), tensor.sizes().vec(), dtype);
}

// The tensors of a call: their memory, and the description of it for the kernel.
void add(std::vector<at::Tensor>& tensors, std::vector<HostBuffer>& buffers, at::Tensor tensor,
         DataType dtype) {
  buffers.push_back(buffer_of(tensor, dtype));
  tensors.push_back(std::move(tensor));
}

}  // namespace

void register_kernel(const std::string& op, CustomKernel kernel) {
  if (op.empty() || op.find_first_not_of(kNameCharacters) != op.npos || !kernel)
    throw Error(ErrorKind::Argument,
                "a kernel needs a function, and the name of an op such as mylib::op.default");
  std::lock_guard lock(registry().mutex);
  const uint64_t number = ++registry().count;
  registry().kernels[op] = std::make_shared<const Registered>(Registered{std::move(kernel), number});
}

bool kernels::custom_op(OpBuilder& op) {
  std::string_view text = op.attributes().text("func_name");
  if (!text.starts_with(kPrefix)) return false;
  text.remove_prefix(kPrefix.size());
  const size_t end = std::min(text.find(' '), text.size());
  CustomCall call{std::string(text.substr(0, end)), {}, short_location(op.operation().location), {}, {}};
  op.require(!call.op.empty() && call.op.find_first_not_of(kNameCharacters) == call.op.npos,
             "the name of a registered op has other characters than letters, digits and _:.");
  call.arguments = text.substr(std::min(end + 1, text.size()));
  const auto kernel = find(call.op);
  op.planner().plan->custom += "|" + call.op + "#" + std::to_string(kernel->number);
  const std::vector<Slot> ins = op.ins("ins"), outs = op.outs("outs");
  op.require(!outs.empty(), "a registered op has no results");
  std::vector<DataType> types;
  std::vector<TensorSpec> results;
  for (const Slot slot : ins) types.push_back(plain(op.spec(slot).dtype));
  for (const Slot slot : outs) results.push_back(op.spec(slot));
  const auto run = [=](Frame& f) {
    CustomCall filled = call;
    std::vector<at::Tensor> inputs, outputs;
    for (size_t i = 0; i < ins.size(); ++i) {
      const at::Tensor value = f[ins[i]].to(host_type(types[i]));
      add(inputs, filled.inputs, value.clone(at::MemoryFormat::Contiguous), types[i]);
    }
    for (const TensorSpec& spec : results)
      add(outputs, filled.outputs, at::empty(spec.shape, host_type(plain(spec.dtype))), plain(spec.dtype));
    // The kernel may use all of PyTorch; the runtime itself calls CPU kernels only.
    c10::impl::ForceDispatchKeyGuard usual(c10::default_included_set, c10::default_excluded_set);
    kernel->run(filled);
    return outputs;
  };
  for (size_t i = 0; i < outs.size(); ++i) {
    op.compute(outs[i], [=](Frame& f) {
      if (i == 0) f.further = run(f);
      return std::exchange(f.further[i], at::Tensor());
    });
  }
  return true;
}

}  // namespace tt::runtime

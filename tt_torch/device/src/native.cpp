// Ops that run on the device. Each row of ops.h registers a kernel that computes on device memory. The most
// frequent ops of small programs also have rows here, which avoid boxing their arguments.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/add_cpu_dispatch.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <ATen/ops/div_cpu_dispatch.h>
#include <ATen/ops/exp_cpu_dispatch.h>
#include <ATen/ops/gelu_cpu_dispatch.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <ATen/ops/mul_cpu_dispatch.h>
#include <ATen/ops/neg_cpu_dispatch.h>
#include <ATen/ops/relu_cpu_dispatch.h>
#include <ATen/ops/sigmoid_cpu_dispatch.h>
#include <ATen/ops/silu_cpu_dispatch.h>
#include <ATen/ops/sqrt_cpu_dispatch.h>
#include <ATen/ops/sub_cpu_dispatch.h>
#include <ATen/ops/tanh_cpu_dispatch.h>
#include <ATen/ops/threshold_backward_cpu_dispatch.h>
#include <torch/library.h>

#include "generator.h"
#include "ops.h"
#include "tt/device/values.h"

namespace tt::device {

namespace {

using torch::jit::Stack;

// Tensors of a list may be on the CPU: the indices of advanced indexing, or the step counters of an
// optimizer.
at::Tensor enter_element(Crossing& crossing, const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_privateuseone() ? crossing.enter(tensor) : tensor;
}

void enter(Crossing& crossing, c10::IValue& value) {
  if (value.isTensor()) {
    value = crossing.enter(value.toTensor());
  } else if (value.isTensorList()) {
    c10::List<at::Tensor> views;
    views.reserve(value.toListRef().size());
    for (const c10::IValue& element : value.toListRef())
      views.push_back(enter_element(crossing, element.toTensor()));
    value = std::move(views);
  } else if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> views;
    for (const c10::IValue& element : value.toListRef())
      views.push_back(element.isNone() ? std::optional<at::Tensor>()
                                       : enter_element(crossing, element.toTensor()));
    value = std::move(views);
  }
}

void leave(Crossing& crossing, c10::IValue& value) {
  if (value.isTensor()) {
    value = crossing.leave(value.toTensor());
  } else if (value.isTensorList()) {
    c10::List<at::Tensor> results;
    for (const c10::IValue& element : value.toListRef())
      results.push_back(crossing.leave(element.toTensor()));
    value = std::move(results);
  }
}

at::Tensor view(Crossing& crossing, const at::Tensor& tensor) { return crossing.enter(tensor); }
template <typename Other>
Other& view(Crossing&, Other& other) {
  return other;
}

// Counts up the versions of tensors in a list. Autograd does this only for tensors outside of lists.
void bump_versions(const c10::IValue& tensors) {
  for (const c10::IValue& element : tensors.toListRef())
    if (const at::Tensor& tensor = element.toTensor(); !tensor.is_inference())
      tensor.unsafeGetTensorImpl()->bump_version();
}

// Runs the CPU kernel of an op on views of its operands.
class NativeOp final : public c10::OperatorKernel {
 public:
  explicit NativeOp(const c10::FunctionSchema& schema)
      : arguments_(schema.arguments().size()), results_(schema.returns().size()) {
    for (size_t i = 0; i < arguments_; ++i) {
      const c10::Argument& argument = schema.arguments()[i];
      if (argument.type()->str().starts_with("Generator")) generator_ = static_cast<int>(i);
      const bool list = argument.type()->kind() == c10::TypeKind::ListType;
      if (list && argument.alias_info() && argument.alias_info()->isWrite()) written_lists_.push_back(i);
    }
  }

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    Crossing crossing;
    const size_t base = stack->size() - arguments_;
    for (const size_t i : written_lists_) bump_versions((*stack)[base + i]);
    for (size_t i = base; i < stack->size(); ++i) enter(crossing, (*stack)[i]);
    if (generator_ >= 0) {
      c10::IValue& value = (*stack)[base + static_cast<size_t>(generator_)];
      value = host_generator(value.toOptional<at::Generator>(), crossing.device());
    }
    {
      const at::AutoDispatchBelowADInplaceOrView guard;
      op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    }
    crossing.finish();
    for (size_t i = stack->size() - results_; i < stack->size(); ++i) leave(crossing, (*stack)[i]);
  }

 private:
  size_t arguments_, results_;
  int generator_ = -1;
  std::vector<size_t> written_lists_;
};

// Runs one CPU kernel in the same way, without boxing its arguments. `kernel` takes views, and returns a new
// tensor or its first argument.
template <auto kernel>
struct Direct;

template <typename... Arguments, at::Tensor (*kernel)(Arguments...)>
struct Direct<kernel> {
  static at::Tensor call(Arguments... arguments) {
    Crossing crossing;
    const at::AutoDispatchBelowADInplaceOrView guard;
    // Braces evaluate the arguments from left to right.
    const std::tuple<decltype(view(crossing, arguments))...> views{view(crossing, arguments)...};
    const at::Tensor result = std::apply(kernel, views);
    return adopt(result, crossing.device());
  }
};

template <typename... Arguments, at::Tensor& (*kernel)(at::Tensor&, Arguments...)>
struct Direct<kernel> {
  static at::Tensor& call(at::Tensor& self, Arguments... arguments) {
    Crossing crossing;
    at::Tensor target = crossing.enter(self);
    const at::AutoDispatchBelowADInplaceOrView guard;
    kernel(target, view(crossing, arguments)...);
    return self;
  }
};

using Division = at::Tensor(const at::Tensor&, const at::Tensor&);
using DivisionInPlace = at::Tensor&(at::Tensor&, const at::Tensor&);

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("add.Tensor", Direct<&at::cpu::add>::call);
  m.impl("add_.Tensor", Direct<&at::cpu::add_>::call);
  m.impl("sub.Tensor", Direct<&at::cpu::sub>::call);
  m.impl("sub_.Tensor", Direct<&at::cpu::sub_>::call);
  m.impl("mul.Tensor", Direct<&at::cpu::mul>::call);
  m.impl("mul_.Tensor", Direct<&at::cpu::mul_>::call);
  m.impl("div.Tensor", Direct<static_cast<Division*>(&at::cpu::div)>::call);
  m.impl("div_.Tensor", Direct<static_cast<DivisionInPlace*>(&at::cpu::div_)>::call);
  m.impl("mm", Direct<static_cast<Division*>(&at::cpu::mm)>::call);
  m.impl("bmm", Direct<static_cast<Division*>(&at::cpu::bmm)>::call);
  m.impl("addmm", Direct<&at::cpu::addmm>::call);
  m.impl("exp", Direct<&at::cpu::exp>::call);
  m.impl("gelu", Direct<&at::cpu::gelu>::call);
  m.impl("neg", Direct<&at::cpu::neg>::call);
  m.impl("relu", Direct<&at::cpu::relu>::call);
  m.impl("relu_", Direct<&at::cpu::relu_>::call);
  m.impl("sigmoid", Direct<&at::cpu::sigmoid>::call);
  m.impl("silu", Direct<&at::cpu::silu>::call);
  m.impl("sqrt", Direct<&at::cpu::sqrt>::call);
  m.impl("tanh", Direct<&at::cpu::tanh>::call);
  m.impl("threshold_backward", Direct<&at::cpu::threshold_backward>::call);
}

// Whether an op has a CPU kernel of its own. Some ops are composed from other ops, and the composition gives
// their gradient. They must stay composed, so they do not count.
bool has_cpu_kernel(const c10::OperatorHandle& op) {
  using c10::DispatchKey;
  return op.hasKernelForDispatchKey(DispatchKey::CPU) ||
         (op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) &&
          !op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd));
}

// Whether an op creates a tensor on a device. PyTorch composes these ops from `empty` and an op with `out=`.
bool takes_device(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.arguments(),
                             [](const c10::Argument& argument) { return argument.name() == "device"; });
}

// Whether ops.h lists the op. The name of an in-place op ends with an underscore; it also counts as listed if
// ops.h has its name without the underscore.
bool is_listed(std::string_view name) {
  static const std::set<std::string_view> listed(std::begin(kOps), std::end(kOps));
  return listed.contains(name) || (name.ends_with('_') && listed.contains(name.substr(0, name.size() - 1)));
}

// Registers every overload of the listed ops that has a CPU kernel of its own.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with("aten::") || !is_listed(std::string_view(name.name).substr(6))) continue;
    const auto op = c10::Dispatcher::singleton().findOp(name);
    if (!op || !has_cpu_kernel(*op) || takes_device(op->schema())) continue;
    if (op->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1)) continue;  // it has a row above
    m.impl(toString(name).c_str(),
           torch::CppFunction::makeFromBoxedFunctor(std::make_unique<NativeOp>(op->schema())));
  }
}

}  // namespace

}  // namespace tt::device

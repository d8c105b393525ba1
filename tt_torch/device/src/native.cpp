// Ops that run on the device: each row of ops.h registers a kernel that computes on device memory itself.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "generator.h"
#include "ops.h"
#include "values.h"

namespace tt::device {

namespace {

using torch::jit::Stack;

at::Tensor enter(Crossing& crossing, const at::Tensor& tensor) { return crossing.enter(tensor); }

// Indices of advanced indexing may lie on the CPU, like lists of step counters.
at::Tensor enter_element(Crossing& crossing, const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_privateuseone() ? crossing.enter(tensor) : tensor;
}

void enter(Crossing& crossing, c10::IValue& value) {
  if (value.isTensor()) {
    value = enter(crossing, value.toTensor());
  } else if (value.isTensorList()) {
    c10::List<at::Tensor> views;
    views.reserve(value.toListRef().size());
    for (const c10::IValue& element : value.toListRef()) views.push_back(enter_element(crossing, element.toTensor()));
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
    for (const c10::IValue& element : value.toListRef()) results.push_back(crossing.leave(element.toTensor()));
    value = std::move(results);
  }
}

// Runs an op's CPU kernel on views of its operands.
class NativeOp final : public c10::OperatorKernel {
 public:
  explicit NativeOp(const c10::FunctionSchema& schema)
      : arguments_(schema.arguments().size()), results_(schema.returns().size()) {
    for (size_t i = 0; i < arguments_; ++i)
      if (schema.arguments()[i].type()->str().starts_with("Generator")) generator_ = static_cast<int>(i);
  }

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    Crossing crossing;
    const size_t base = stack->size() - arguments_;
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
};

bool has_cpu_kernel(const c10::OperatorHandle& op) { return op.hasKernelForDispatchKey(c10::DispatchKey::CPU); }

// Every overload of the listed ops that the CPU has a kernel of its own for. PyTorch composes the others.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  const std::set<std::string_view> listed(std::begin(kOps), std::end(kOps));
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with("aten::") || !listed.contains(std::string_view(name.name).substr(6))) continue;
    const auto op = c10::Dispatcher::singleton().findOp(name);
    if (!op || !has_cpu_kernel(*op)) continue;
    m.impl(toString(name).c_str(),
           torch::CppFunction::makeFromBoxedFunctor(std::make_unique<NativeOp>(op->schema())));
  }
}

}  // namespace

}  // namespace tt::device

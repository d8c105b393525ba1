#include <ATen/native/CPUFallback.h>

#include <iostream>
#include <mutex>
#include <string_view>

#include "chips.h"
#include "tt/device/device.h"

namespace tt::device {

namespace {

bool is_forbidden() { return variable("TT_TORCH_FALLBACK") == "error"; }

bool is_logged() {
  return variable("TT_TORCH_LOG").find("fallback") != std::string_view::npos ||
         variable("DEBUG_CPP_EXT") == "1";
}

struct Calls {
  std::mutex mutex;
  std::map<std::string, int64_t> counts;
};

Calls& calls() {
  static auto& all = *new Calls();
  return all;
}

void count(const std::string& op) {
  std::lock_guard lock(calls().mutex);
  if (++calls().counts[op] == 1 && is_logged())
    std::cerr << "tt_torch: " + op + " has no kernel on the device and runs on the CPU\n";
}

void require_allowed(const std::string& name) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !is_forbidden(), name,
      " has no kernel on device tt, and TT_TORCH_FALLBACK=error does not allow it to run "
      "on the CPU; unset the variable, or move the operands to the CPU for this op");
  count(name);
}

void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  require_allowed(toString(op.operator_name()));
  at::native::cpu_fallback(op, stack);
}

// The kernel of the CPU takes no integers, and those of GPUs do. Transformers counts tokens per expert so.
at::Tensor histc(const at::Tensor& x, int64_t bins, const at::Scalar& low, const at::Scalar& high) {
  require_allowed("aten::histc");
  const bool counts_integers = c10::isIntegralType(x.scalar_type(), /*includeBool=*/false);
  const at::Tensor host = counts_integers ? x.cpu().to(at::kDouble) : x.cpu();
  return at::histc(host, bins, low, high).to(x.options());
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back>()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("histc", histc); }

void refuse_quantized(const c10::OperatorHandle& op, torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, toString(op.operator_name()),
                              ": device tt has no tensors of PyTorch's quantized types, such as qint8; call "
                              "dequantize() first. Compiled models have weight_dtype=\"bfp8_b\" for small "
                              "weights");
}

TORCH_LIBRARY_IMPL(_, QuantizedPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_quantized>());
}

}  // namespace

std::map<std::string, int64_t> fallback_counts() {
  std::lock_guard lock(calls().mutex);
  return calls().counts;
}

void clear_fallback_counts() {
  std::lock_guard lock(calls().mutex);
  calls().counts.clear();
}

}  // namespace tt::device

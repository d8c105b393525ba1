// device="tt" from C++: tensors, PyTorch's ops, and a custom op with its own kernel.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/library.h>
#include <tt/device/device.h>
#include <tt/device/values.h>

#include <iostream>

namespace {

// A kernel computes on CPU tensors that share the memory of its operands. `enter` makes such a tensor, and
// checks that all operands are on one device. `leave` gives a new result to the device.
at::Tensor scaled_relu(const at::Tensor& x, double scale) {
  tt::device::Crossing crossing;
  const at::Tensor input = crossing.enter(x).contiguous();
  TORCH_CHECK_TYPE(input.scalar_type() == at::kFloat, "scaled_relu needs float32, found ", x.scalar_type());
  at::Tensor output = at::empty_like(input);
  const float* from = input.const_data_ptr<float>();
  float* to = output.mutable_data_ptr<float>();
  for (int64_t i = 0; i < input.numel(); ++i) to[i] = from[i] > 0 ? static_cast<float>(scale) * from[i] : 0;
  return crossing.leave(output);
}

TORCH_LIBRARY(example, m) { m.def("scaled_relu(Tensor x, float scale) -> Tensor"); }
TORCH_LIBRARY_IMPL(example, PrivateUse1, m) { m.impl("scaled_relu", scaled_relu); }

}  // namespace

int main() {
  std::cout << tt::device::device_count() << " device\n";
  const at::Device device("tt");
  const at::Tensor x = at::arange(6, at::TensorOptions(at::kFloat).device(device)).view({2, 3}) - 2;
  const at::Tensor product = at::matmul(x, x.t());
  const auto op = c10::Dispatcher::singleton()
                      .findSchemaOrThrow("example::scaled_relu", "")
                      .typed<at::Tensor(const at::Tensor&, double)>();
  const at::Tensor result = op.call(product - 3, 0.5);
  std::cout << result.device();
  for (int64_t i = 0; i < result.numel(); ++i) std::cout << " " << result.view(-1)[i].item<float>();
  std::cout << "\n" << tt::device::fallback_counts().size() << " fallbacks\n";
}

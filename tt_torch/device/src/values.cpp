#include "tt/device/values.h"

#include "chips.h"
#include "memory.h"
#include "profiler.h"

namespace tt::device {

namespace {

constexpr c10::DispatchKeySet kHost(c10::DispatchKey::CPU), kDevice(c10::DispatchKey::PrivateUse1);

void take_geometry(const at::Tensor& to, const at::Tensor& from) {
  to.unsafeGetTensorImpl()->set_sizes_and_strides(from.sizes(), from.strides(), from.storage_offset());
}

void take_lazy_bits(const at::Tensor& to, const at::Tensor& from) {
  if (from.is_conj()) to._set_conj(true);
  if (from.is_neg()) to._set_neg(true);
}

at::Tensor over(c10::Storage storage, c10::DispatchKeySet keys, const at::Tensor& like) {
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, like.dtype());
  take_geometry(made, like);
  take_lazy_bits(made, like);
  return made;
}

c10::Storage host_storage(const c10::Storage& storage) {
  if (const Block* block = Allocator::block_of(storage.data_ptr())) return block->host;
  // The storage is empty, or its memory belongs to somebody else.
  if (storage.nbytes() == 0)
    return {c10::Storage::use_byte_size_t(), 0, c10::GetAllocator(c10::kCPU), /*resizable=*/true};
  return {c10::Storage::use_byte_size_t(), storage.nbytes(),
          c10::DataPtr(storage.mutable_data(), c10::Device(c10::kCPU)), nullptr, /*resizable=*/false};
}

}  // namespace

at::Tensor host_view(const at::Tensor& tensor) {
  at::Tensor view = over(host_storage(tensor.storage()), kHost, tensor);
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) view.unsafeGetTensorImpl()->set_wrapped_number(true);
  return view;
}

at::Tensor adopt(const at::Tensor& result, c10::DeviceIndex device) {
  TORCH_INTERNAL_ASSERT(result.is_cpu() && result.layout() == c10::kStrided);
  const c10::Storage& host = result.storage();
  c10::Storage storage(c10::Storage::use_byte_size_t(), host.nbytes(),
                       Allocator::instance().adopt(host, device), &Allocator::instance(), /*resizable=*/true);
  return over(std::move(storage), kDevice, result);
}

at::Tensor share(const at::Tensor& view, const at::Tensor& owner) {
  return over(owner.storage(), kDevice, view);
}

void follow(const at::Tensor& tensor, const at::Tensor& view) {
  const c10::Storage &storage = tensor.storage(), &host = view.storage();
  if (storage.data() != host.data() || storage.nbytes() != host.nbytes()) {
    storage.set_data_ptr_noswap(Allocator::instance().adopt(host, tensor.get_device()));
    storage.set_nbytes(host.nbytes());
  }
  if (!tensor.sizes().equals(view.sizes()) || !tensor.strides().equals(view.strides()))
    take_geometry(tensor, view);
}

Crossing::Crossing() : begin_(begin_work()) {}

Crossing::~Crossing() {
  if (begin_) end_work(Work::Op, begin_, device());
}

at::Tensor Crossing::enter(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  if (!tensor.is_privateuseone()) {
    TORCH_CHECK(tensor.is_cpu() && tensor.dim() == 0,
                "expected all tensors to be on the same device, but one is on ", tensor.device(),
                " and another on tt");
    return tensor;
  }
  TORCH_CHECK(pairs_.empty() || tensor.get_device() == device() || tensor.dim() == 0,
              "expected all tensors to be on the same device, but one is on ", tensor.device(),
              " and another on tt:", static_cast<int>(device()));
  pairs_.push_back({tensor, host_view(tensor)});
  return pairs_.back().view;
}

at::Tensor Crossing::leave(const at::Tensor& result) {
  if (!result.defined()) return result;
  for (const Pair& pair : pairs_)
    if (pair.view.is_same(result)) return pair.tensor;
  for (const Pair& pair : pairs_)
    if (pair.view.storage().is_alias_of(result.storage())) return share(result, pair.tensor);
  return adopt(result, device());
}

void Crossing::finish() const {
  for (const Pair& pair : pairs_) follow(pair.tensor, pair.view);
}

c10::DeviceIndex Crossing::device() const {
  return pairs_.empty() ? current_chip() : static_cast<c10::DeviceIndex>(pairs_.front().tensor.get_device());
}

}  // namespace tt::device

// The ops that make tensors: memory, views, copies. The other ops are in native.cpp.
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_cpu_dispatch.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "memory.h"
#include "profiler.h"
#include "tt/device/values.h"

namespace tt::device {

namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);
using Type = std::optional<c10::ScalarType>;
using Layout = std::optional<c10::Layout>;
using Device = std::optional<c10::Device>;

void check_plain(Layout layout, std::optional<bool> pinned) {
  TORCH_CHECK(c10::layout_or_default(layout) == c10::kStrided, "device tt has only strided tensors, got ",
              *layout);
  TORCH_CHECK(!c10::pinned_memory_or_default(pinned), "only memory of the CPU can be pinned");
}

at::Tensor empty(c10::IntArrayRef size, Type dtype, Layout layout, Device device, std::optional<bool> pinned,
                 std::optional<c10::MemoryFormat> format) {
  check_plain(layout, pinned);
  const c10::DeviceGuard guard(c10::device_or_default(device));
  return at::detail::empty_generic(size, &Allocator::instance(), kKeys, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, Type dtype, Layout layout,
                         Device device, std::optional<bool> pinned) {
  check_plain(layout, pinned);
  const c10::DeviceGuard guard(c10::device_or_default(device));
  return at::detail::empty_strided_generic(size, stride, &Allocator::instance(), kKeys,
                                           c10::dtype_or_default(dtype));
}

at::Tensor on_host(const at::Tensor& tensor) {
  if (tensor.is_privateuseone()) return host_view(tensor);
  TORCH_CHECK(tensor.is_cpu(), "device tt can copy only from and to the CPU, got ", tensor.device(),
              "; copy to the CPU first");
  return tensor;
}

at::Tensor& copy(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  const int64_t begin = begin_work();
  at::Tensor to = on_host(self);
  at::native::copy_(to, on_host(source), non_blocking);
  end_work(Work::Copy, begin, (self.is_cpu() ? source : self).device().index());
  return self;
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  at::Tensor to = dst;
  return copy(to, self, non_blocking);
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  at::Tensor to = on_host(dst);
  at::native::resize_(to, self.sizes(), std::nullopt);
  at::native::copy_(to, on_host(self), false);
  if (dst.is_privateuseone()) follow(dst, to);
  return dst;
}

const at::Tensor& resize(const at::Tensor& self, c10::IntArrayRef size,
                         std::optional<c10::MemoryFormat> format) {
  const at::Tensor view = host_view(self);
  at::native::resize_(view, size, format);
  follow(self, view);
  return self;
}

at::Tensor& set_to_storage(at::Tensor& self, c10::Storage storage, int64_t offset, c10::IntArrayRef size,
                           c10::IntArrayRef stride) {
  return at::cpu::set_(self, std::move(storage), offset, size, stride);
}

void record_stream(at::Tensor&, c10::Stream) {}  // streams run in program order

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("copy_", copy);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("resize_", resize);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  m.impl("set_.source_Tensor", at::native::set_tensor_);
  m.impl("set_.source_Storage", [](at::Tensor& self, c10::Storage source) -> at::Tensor& {
    return at::native::set_(self, std::move(source));
  });
  m.impl("set_.source_Storage_storage_offset", set_to_storage);
  m.impl("record_stream", record_stream);
}

// Copies resolve lazy conjugation and negation themselves. To resolve them beforehand would need another
// copy.
void copies_see_lazy_bits(torch::Library& m) {
  for (const char* op : {"_copy_from", "_copy_from_and_resize"})
    m.impl(op, torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, Conjugate, m) { copies_see_lazy_bits(m); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { copies_see_lazy_bits(m); }

}  // namespace

}  // namespace tt::device

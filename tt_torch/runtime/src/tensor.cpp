#include "tt/runtime/tensor.h"

#include <atomic>

#include "aten_only.h"
#include "const_cache.h"
#include "failure.h"
#include "tensor_impl.h"
#include "tt/runtime/error.h"
#include "values.h"

namespace tt::runtime {

namespace {
std::atomic<uint64_t> next_version{1};
constexpr size_t kMaxForms = 4;  // packed forms that are kept of one tensor
}  // namespace

HostBuffer row_major(void* data, std::vector<int64_t> shape, DataType dtype) {
  const std::vector<int64_t> strides = row_major_strides(shape);
  return {data, std::move(shape), strides, dtype};
}

Tensor::Impl::Impl(TensorSpec s, at::Tensor value, bool owned, at::Tensor strided)
    : spec(std::move(s)),
      version(next_version++),
      plain_(std::move(value)),
      strided_(std::move(strided)),
      owned_(owned) {}

Tensor::Impl::~Impl() { ConstCache::instance().drop(version); }

at::Tensor Tensor::Impl::restored() const {
  if (!released_.empty())
    throw Error(ErrorKind::ReleasedWeight,
                released_ +
                    " was released, and this program needs a form of it that no program on the device had; "
                    "call this program before the weights are released");
  if (plain_.defined()) return plain_;
  return strided_.defined() ? to_value(strided_, spec.dtype)
                            : forms_.back().packing.unpack(forms_.back().value);
}

at::Tensor Tensor::Impl::plain() {
  std::lock_guard lock(mutex_);
  return plain_ = restored();
}

at::Tensor Tensor::Impl::once() {
  std::lock_guard lock(mutex_);
  return restored();
}

at::Tensor Tensor::Impl::packed(const Packing& packing) {
  std::lock_guard lock(mutex_);
  for (const Form& form : forms_)
    if (form.packing.key == packing.key) return form.value;
  forms_.push_back({packing, packing.pack(restored())});
  if (forms_.size() > kMaxForms) forms_.erase(forms_.begin());
  if (owned_) plain_.reset();
  return forms_.back().value;
}

void Tensor::Impl::release(const std::string& weight) {
  std::lock_guard lock(mutex_);
  if (state) return;
  if (forms_.empty()) {
    if (direct || !ConstCache::instance().depends_on(version)) return;
    released_ = weight;
    buffer.reset();
  }
  owned_ = true;
  plain_.reset();
  strided_.reset();
}

static void check(const Device& device, const TensorSpec& spec, const HostBuffer& source,
                  const std::string& who) {
  if (!converts(source.dtype, spec.dtype))
    throw Error(ErrorKind::InputDtype,
                who + ": got " + name(source.dtype) + ", expected " + accepted_types(spec.dtype));
  if (source.shape != spec.shape)
    throw Error(ErrorKind::InputShape,
                who + ": got shape " + describe(source.shape) + ", expected " + describe(spec.shape));
  device.impl()->require_open();
}

// The allocation of a tensor on the device; null for host specs, and for memory that the device has counted.
static std::unique_ptr<DeviceBuffer> allocate(const Device& device, const TensorSpec& spec, bool counted,
                                              const char* label) {
  if (spec.buffer == BufferType::Host || counted) return nullptr;
  return std::make_unique<DeviceBuffer>(device.impl(), spec, label);
}

Tensor Tensor::create(const Device& device, const TensorSpec& spec, const HostBuffer& source,
                      std::shared_ptr<void> owner, const std::string& who, bool counts) {
  check(device, spec, source, who);
  AtenOnly guard;
  const bool stays = source.on_device && is_value(view_of(source), spec.dtype);
  const bool copies = spec.buffer != BufferType::Host && !stays;
  auto buffer = allocate(device, spec, stays || !counts, "resident tensor");
  bool borrows = false;
  at::Tensor strided;
  at::Tensor value = guarded(
      [&] {
        const at::Tensor host = view_of(source, std::move(owner));
        const bool same = host.scalar_type() == storage_type(spec.dtype) && !needs_settling(spec.dtype);
        if (!copies && same && !host.is_contiguous()) {
          strided = host;
          return at::Tensor();
        }
        at::Tensor held = to_value(host, spec.dtype);
        const bool shares = held.is_alias_of(host);
        borrows = shares && !copies;
        return shares && copies ? held.clone() : held;
      },
      [&] { return "keeping " + who + " on the device"; });
  auto impl = std::make_shared<Impl>(spec, std::move(value), !borrows, std::move(strided));
  impl->buffer = std::move(buffer);
  return Tensor(std::move(impl));
}

Tensor Tensor::state(const Device& device, const TensorSpec& spec, const HostBuffer& source,
                     std::shared_ptr<void> owner, const std::string& who) {
  check(device, spec, source, who);
  AtenOnly guard;
  at::Tensor value = view_of(source, std::move(owner));
  // An op that writes to block floats rounds all of them, so the memory may have other numbers before.
  const bool fits = value.scalar_type() == storage_type(spec.dtype) && value.is_contiguous();
  if (!is_value(value, spec.dtype) && !(fits && is_block_float(spec.dtype)))
    throw Error(ErrorKind::InputDtype, who + ": the device cannot update this memory in place");
  auto impl = std::make_shared<Impl>(spec, std::move(value), false);
  impl->buffer = allocate(device, spec, source.on_device, "state");
  impl->state = true;
  return Tensor(std::move(impl));
}

const TensorSpec& Tensor::spec() const { return impl_->spec; }
uint64_t Tensor::version() const { return impl_->version; }
void Tensor::release(const std::string& weight) { impl_->release(weight); }

}  // namespace tt::runtime

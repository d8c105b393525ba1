// The device guard: current chip, streams, events. The emulated device runs ops in program order, and each op
// is done when its call returns. So streams are only labels, and an event has happened as soon as it is
// recorded.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <atomic>
#include <chrono>

#include "chips.h"
#include "memory.h"

namespace tt::device {

namespace {

using Clock = std::chrono::steady_clock;

struct Event {
  Clock::time_point time;
};

thread_local std::array<c10::StreamId, kMostChips> current_streams{};  // 0 is the default stream
std::atomic<c10::StreamId> next_stream{1};

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::DeviceIndex deviceCount() const noexcept override { return chip_count(); }

  c10::Device getDevice() const override { return {kType, current_chip()}; }
  void setDevice(c10::Device device) const override { exchangeDevice(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { exchange_chip(device.index()); }
  c10::Device exchangeDevice(c10::Device device) const override {
    if (device.index() >= 0) check_chip(device.index());
    return {kType, exchange_chip(device.index())};
  }

  c10::Stream getStream(c10::Device device) const override { return stream(device, slot(device)); }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream(device, 0); }
  c10::Stream getNewStream(c10::Device device, int) const override { return stream(device, next_stream++); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return stream(device, next_stream++);
  }
  c10::Stream exchangeStream(c10::Stream wanted) const override {
    return stream(wanted.device(), std::exchange(slot(wanted.device()), wanted.id()));
  }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeDevice(c10::DeviceIndex chip) const override { check_chip(chip); }

  void record(void** event, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {
    if (!*event) *event = new Event();
    static_cast<Event*>(*event)->time = Clock::now();
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override {}
  double elapsedTime(void* from, void* to, c10::DeviceIndex) const override {
    TORCH_CHECK(from && to, "elapsed_time needs two events that were recorded; call record() first");
    return std::chrono::duration<double, std::milli>(static_cast<Event*>(to)->time -
                                                     static_cast<Event*>(from)->time)
        .count();
  }

 private:
  static c10::DeviceIndex chip_of(c10::Device device) {
    return device.index() < 0 ? current_chip() : device.index();
  }
  static c10::StreamId& slot(c10::Device device) {
    check_chip(chip_of(device));
    return current_streams[static_cast<size_t>(chip_of(device))];
  }
  static c10::Stream stream(c10::Device device, c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(kType, chip_of(device)), id);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

}  // namespace

}  // namespace tt::device

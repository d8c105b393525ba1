#include "profiler.h"

#include <c10/util/ApproximateClock.h>
#include <libkineto.h>
#include <output_base.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

#include <atomic>
#include <mutex>

namespace tt::device {

namespace {

using libkineto::ActivityType;

struct Event {
  Work kind;
  int64_t begin, end;    // nanoseconds on the clock of PyTorch's own events
  uint64_t correlation;  // the correlation id of the PyTorch op that it belongs to, 0 for none
  c10::DeviceIndex chip;
};

std::atomic<bool> recording{false};
std::mutex mutex;
std::vector<Event> events;
thread_local std::vector<uint64_t> running;  // correlation ids of this thread's PyTorch ops, innermost last

// One trace. Kineto announces the begin and the end of each PyTorch op. An event has the name of its PyTorch
// op.
class Session final : public libkineto::IActivityProfilerSession {
 public:
  void start() override {
    std::lock_guard lock(mutex);
    events.clear();
    recording = true;
    buffer_->span.startTime = c10::getTime();
  }

  void stop() override {
    recording = false;
    buffer_->span.endTime = c10::getTime();
  }

  void pushCorrelationId(uint64_t id) override { running.push_back(id); }
  void popCorrelationId() override {
    if (!running.empty()) running.pop_back();
  }

  void processTrace(libkineto::ActivityLogger& logger, libkineto::getLinkedActivityCallback op_of,
                    int64_t begin, int64_t end) override {
    std::lock_guard lock(mutex);
    for (const Event& event : events) {
      if (event.begin < begin || event.end > end) continue;
      add(event, event.correlation ? op_of(static_cast<int32_t>(event.correlation)) : nullptr).log(logger);
    }
    events.clear();
  }
  void processTrace(libkineto::ActivityLogger& logger) override {
    processTrace(logger, [](int32_t) { return nullptr; }, 0, std::numeric_limits<int64_t>::max());
  }

  std::vector<std::string> errors() override { return {}; }
  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override {
    return std::make_unique<libkineto::DeviceInfo>(0, libkineto::kExceedMaxPid, "tt", "tt");
  }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {}; }
  // Kineto keeps the buffer as long as the trace, which points to the buffer's activities.
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override { return std::move(buffer_); }

 private:
  libkineto::GenericTraceActivity& add(const Event& event, const libkineto::ITraceActivity* op) {
    const bool copy = event.kind == Work::Copy;
    const auto type = copy ? ActivityType::GPU_MEMCPY : ActivityType::CONCURRENT_KERNEL;
    buffer_->emplace_activity(buffer_->span, type, op ? op->name() : copy ? "copy" : "op");
    libkineto::GenericTraceActivity& activity = *buffer_->activities.back();
    activity.startTime = event.begin;
    activity.endTime = event.end;
    activity.device = event.chip;
    activity.id = static_cast<int32_t>(event.correlation);
    activity.linked = op;
    return activity;
  }

  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_ = [] {
    auto buffer = std::make_unique<libkineto::CpuTraceBuffer>();
    buffer->span.name = "tt";
    buffer->gpuOpCount = 0;
    return buffer;
  }();
};

class Profiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override {
    static const std::string name = "tt";
    return name;
  }
  const std::set<ActivityType>& availableActivities() const override {
    static const std::set<ActivityType> types{ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY};
    return types;
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(const std::set<ActivityType>& wanted,
                                                                 const libkineto::Config&) override {
    const bool ours = wanted.contains(ActivityType::CONCURRENT_KERNEL);
    return ours ? std::make_unique<Session>() : nullptr;
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(int64_t, int64_t,
                                                                 const std::set<ActivityType>& wanted,
                                                                 const libkineto::Config& config) override {
    return configure(wanted, config);
  }
};

REGISTER_PRIVATEUSE1_PROFILER(Profiler);

}  // namespace

int64_t begin_work() { return recording.load(std::memory_order_relaxed) ? c10::getTime() : 0; }

void end_work(Work kind, int64_t begin, c10::DeviceIndex chip) {
  if (!begin || !recording) return;
  const uint64_t correlation = running.empty() ? 0 : running.back();
  const Event event{kind, begin, c10::getTime(), correlation, chip};
  std::lock_guard lock(mutex);
  events.push_back(event);
}

}  // namespace tt::device

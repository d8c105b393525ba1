// The state of an executable between calls.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include "plan.h"
#include "tt/runtime/executable.h"

namespace tt::runtime {

using Handles = std::vector<Tensor::Impl*>;  // the resident tensor that is bound to each slot, or null

struct Executable::Impl {
  Binary binary;
  Device device;
  size_t program;
  std::shared_ptr<Plan> plan;
  std::vector<Frame> frames;  // one per chip of the mesh
  bool laid_out = false;      // the plan's own memory exists; the first run that fits the device allocates it
  OpCallback callback;
  std::optional<OpCallback> next_callback;  // set from inside a callback
  Peaks peaks;
  uint64_t generation = ~uint64_t{0};  // the device's generation when `peaks` was computed
  std::vector<bool> resident;          // which inputs were resident when `peaks` was computed
  std::mutex mutex;
  std::atomic<std::thread::id> runner;  // the thread that is inside run()

  Impl(Binary b, size_t p, Device d);
  PlanOptions options() const;
  void replan();
  bool inside_own_run() const { return runner.load() == std::this_thread::get_id(); }
  void run(std::span<const Input> inputs, std::span<const HostBuffer> outputs);

 private:
  std::string per_chip() const;            // for errors; "" on one chip
  std::string on_chip(size_t chip) const;  // the same
  void check_inputs(std::span<const Input> inputs) const;
  void check_outputs(std::span<const HostBuffer> outputs) const;
  void account(std::span<const Input> inputs);
  void lay_out_once();
  // The chips of this process that run the program: their number, the first one, and their frames.
  size_t chips() const;
  size_t first_chip() const;
  Frame& own_frame(size_t chip) { return frames[first_chip() + chip]; }
  void bind(std::span<const Input> inputs, std::vector<Handles>& handles);
  void bind_input(Frame& frame, size_t number, const Input& input, Handles& handles);
  void bind_value(Frame& frame, Slot slot, Tensor::Impl* handle);
  void release();
  void deliver(std::span<const Input> inputs, std::span<const HostBuffer> outputs);
  // constants.cpp
  size_t computed = 0;  // bytes of constants that were computed since freed memory was given back
  void bind_constants(std::vector<Handles>& handles, std::vector<ConstResults>& alive);
  bool fits(const ConstCall& constant, const std::vector<Tensor>& results) const;
  bool unchanged(const ConstCall& constant, size_t chip, const Handles& handles) const;
  ConstResults evaluate(ConstCall& constant, size_t chip, const Handles& handles);
  std::vector<Tensor> compute(const ConstCall& constant, size_t chip, const Handles& handles);
  // steps.cpp
  void execute();
  void report(const Step& step);
};

// steps.cpp
// The name of a program or an op in PyTorch's profiler.
std::string recorded_name(std::string_view name);
Frame make_frame(const Plan& plan, size_t memory = 0);
std::vector<at::Tensor> run_constant(const Plan& plan, const std::vector<at::Tensor>& inputs);

}  // namespace tt::runtime

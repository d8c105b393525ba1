#include "recording.h"

#include <algorithm>

#include "tt/runtime/error.h"

namespace tt::runtime {

namespace {

// Throws if a part of a recording's programs has another form than the only known compiler writes.
void expect(bool condition, const Program& program, const std::string& what) {
  if (!condition)
    throw Error(ErrorKind::UnsupportedBinary, "the recording has a form that the runtime does not know: " +
                                                  what + " in program " + std::string(program.name));
}

// The ops of a program, without the ops that only name the device.
std::vector<Operation> ops_of(const Program& program) {
  std::vector<Operation> ops;
  std::copy_if(program.operations.begin(), program.operations.end(), std::back_inserter(ops),
               [](const Operation& op) { return op.name != "GetDeviceOp"; });
  return ops;
}

bool is_call(const Operation& op) { return op.name == "FuncCallOp" && op.record.records("outputs").empty(); }

bool same_call(const Operation& a, const Operation& b) {
  return is_call(a) && is_call(b) && a.tensors == b.tensors &&
         a.record.integer("program_id") == b.record.integer("program_id");
}

// A capturing program writes to tensors and calls a program. Then it records the same call, ends the
// recording, replays it and returns its number.
Program steps_of(const Program& capture) {
  const std::vector<Operation> ops = ops_of(capture);
  expect(ops.size() >= 5, capture, "the number of ops");
  const auto call = ops.end() - 5;
  expect(std::all_of(ops.begin(), call, [](auto& op) { return op.name == "WriteTensorOp"; }), capture,
         "an op before the call");
  expect(call[1].name == "BeginTraceCaptureOp" && call[3].name == "EndTraceCaptureOp" &&
             call[4].name == "ExecuteTraceOp" && same_call(call[0], call[2]),
         capture, "the order of ops");
  expect(capture.outputs.size() == 1, capture, "the number of results");
  for (const auto& op : {call[1], call[3], call[4]})
    expect(op.tensors == std::vector{capture.outputs[0].id}, capture, "the recording's number");
  Program steps = capture;
  steps.operations.assign(ops.begin(), call + 1);
  steps.outputs.clear();
  return steps;
}

// Checks that a replaying program only replays the recording whose number it takes.
void check_replay(const Program& execute) {
  const std::vector<Operation> ops = ops_of(execute);
  expect(ops.size() == 1 && ops[0].name == "ExecuteTraceOp" && execute.inputs.size() == 1 &&
             execute.outputs.empty() && ops[0].tensors == std::vector{execute.inputs[0].id},
         execute, "an op, input or result");
}

}  // namespace

Recording recording_of(const Binary::Impl& binary, const Operation& op) {
  const auto named = [&](const char* field) -> const Program& {
    return program_at(binary, static_cast<size_t>(op.record.integer(field)));
  };
  check_replay(named("execute_program_id"));
  return {named("allocate_slots_program_id"), steps_of(named("capture_program_id"))};
}

void refuse_outside_of_recording(const Operation& op) {
  throw Error(
      ErrorKind::UnsupportedBinary,
      std::string(op.name) + " is supported only in the programs that a CaptureOrExecuteTraceOp names");
}

}  // namespace tt::runtime

// Recordings: a device captures the ops of a program at its first call, and replays them at all later ones.
#pragma once

#include "binary_impl.h"

namespace tt::runtime {

// What a CaptureOrExecuteTraceOp says about its recording.
struct Recording {
  const Program& allocate;  // takes the inputs on the device, and returns all tensors of the recording
  // Takes the inputs from the host and all tensors. Writes each of these inputs into its tensor, and runs the
  // recorded ops once.
  Program steps;
};

// Reads the three programs that the op names. Throws a BinaryFormat error if one does not exist, and an
// UnsupportedBinary error if they are not in the form that tt-mlir and jax-tt-plugin 0.1.3 write. Only this
// form is known to mean what Recording says.
Recording recording_of(const Binary::Impl& binary, const Operation& op);

// Throws the error for an op that is used only inside of the programs of a recording.
[[noreturn]] void refuse_outside_of_recording(const Operation& op);

}  // namespace tt::runtime

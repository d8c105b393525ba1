// The decoded form of a binary that planning works on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tt/runtime/binary.h"
#include "wire/reader.h"

namespace tt::runtime {

struct Operand {
  uint32_t id;
  TensorSpec spec;
};

// Its texts lie in the file's bytes: many ops may share a long one.
struct Operation {
  std::string_view name;  // of the union member, for example "MatmulOp"
  wire::Record record;
  std::string_view location, debug_info;
  std::vector<uint32_t> tensors;  // ids of all that it mentions, nested parameter tables included
};

struct Program {
  std::string_view name;
  std::vector<Operand> inputs, outputs;
  std::vector<Operation> operations;
  std::vector<std::pair<int64_t, std::span<const uint8_t>>> libraries;  // host code by id
  int64_t mesh_volume = 1;
};

struct Binary::Impl {
  std::vector<uint8_t> bytes;  // records point into it
  std::string schema_hash, version;
  std::vector<Program> programs;
  std::vector<ProgramInfo> infos;
};

Operand decode_operand(const wire::Record& tensor_ref);
DataType decode_dtype(const wire::Record& record, std::string_view field);

}  // namespace tt::runtime

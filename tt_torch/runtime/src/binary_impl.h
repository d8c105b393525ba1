// The decoded form of a binary, which the planner reads.
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

// One op of a program. Its texts are views of the file's bytes, because many ops may share a long text.
struct Operation {
  std::string_view name;  // the name of the union member, for example "MatmulOp"
  wire::Record record;
  std::string_view location, debug_info;
  std::vector<uint32_t> tensors;  // the ids of all tensors that it mentions, also in nested parameter tables
};

// The chips of a program: `rows` x `columns`, numbered row by row.
struct Mesh {
  int64_t rows = 1, columns = 1;
  int64_t volume() const { return rows * columns; }
  bool operator==(const Mesh&) const = default;
};

struct Program {
  std::string_view name;
  std::vector<Operand> inputs, outputs;
  std::vector<Operation> operations;
  std::vector<std::pair<int64_t, std::span<const uint8_t>>> libraries;  // (id, image of a shared library)
  Mesh mesh;
};

struct Binary::Impl {
  std::vector<uint8_t> bytes;  // the records of `programs` point into it
  std::string schema_hash, version;
  std::vector<Program> programs;
  std::vector<ProgramInfo> infos;
};

// Throws a BinaryFormat error if the binary has no program with this number.
const Program& program_at(const Binary::Impl& binary, size_t index);
Operand decode_operand(const wire::Record& tensor_ref);
DataType decode_dtype(const wire::Record& record, std::string_view field);

}  // namespace tt::runtime

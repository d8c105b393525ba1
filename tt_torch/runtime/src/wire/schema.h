// The wire tables as constant data: the fields of each table with their slots and types, and the names of the
// enums' numbers. There is one Schema per schema hash. The arrays are generated from
// tt_torch/wire/schemas/*.json.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tt/runtime/export.h"

namespace tt::runtime::wire {

enum class Base : uint8_t {
  None,
  Bool,
  I8,
  U8,
  I16,
  U16,
  I32,
  U32,
  I64,
  U64,
  F32,
  F64,
  String,
  Vector,
  Object,
  Union
};

struct Field {
  const char* name;
  uint16_t position;  // the field's id in a table, its byte offset in a struct
  Base base;
  Base element;   // the base type of a vector's elements
  int16_t type;   // the index of the table, struct, union or enum of the field or its elements, or -1
  double value;   // the default of a scalar
  bool optional;  // a scalar whose absence means "not given"
  // Whether the field has numbers of an enum, whose names are in the schema.
  bool is_enum() const { return type >= 0 && (base == Base::Vector ? element : base) < Base::String; }
};

struct Type {
  const char* name;
  const Field* fields;
  uint16_t count;
  bool is_struct;
  uint16_t size, align;  // only of a struct
  uint16_t slots;        // only of a table: the most slots that a table of a file may have
  std::span<const Field> all() const { return {fields, count}; }
};

struct Member {
  const char* name;
  uint8_t tag;
  int16_t type;
};

struct Union {
  const char* name;
  const Member* members;
  uint16_t count;
  const Member* find(uint8_t tag) const {
    for (const Member& member : std::span(members, count))
      if (member.tag == tag) return &member;
    return nullptr;
  }
};

struct Enumerator {
  const char* name;
  int64_t value;
};

struct Enum {
  const char* name;
  std::span<const Enumerator> members;
  bool is_bit_set;  // any number is legal
  // The name of the member with this value; null if there is none.
  const char* name_of(int64_t value) const {
    for (const Enumerator& member : members)
      if (member.value == value) return member.name;
    return nullptr;
  }
};

struct Schema {
  const char* hash;
  const char* identifier;
  std::span<const Type> types;
  std::span<const Union> unions;
  std::span<const Enum> enums;
  uint16_t root;
};

// The tables that were generated when the library was built.
std::span<const Schema> embedded_schemas();

// All schemas with which files can be read: the embedded ones, then those that were added.
std::vector<const Schema*> known_schemas();

// Adds schemas that embed_schemas.py generated for another library. They must outlive all binaries.
TT_RUNTIME_API void add_schemas(std::span<const Schema> schemas);

constexpr size_t size_of(Base base) {
  switch (base) {
    case Base::Bool:
    case Base::I8:
    case Base::U8:
      return 1;
    case Base::I16:
    case Base::U16:
      return 2;
    case Base::I64:
    case Base::U64:
    case Base::F64:
      return 8;
    default:
      return 4;  // 32-bit scalars and offsets
  }
}

// The last part of a name: "EltwiseUnaryOp" for "tt.target.ttnn.EltwiseUnaryOp".
constexpr std::string_view short_name(std::string_view full) { return full.substr(full.rfind('.') + 1); }

}  // namespace tt::runtime::wire

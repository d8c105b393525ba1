// Reads a verified buffer by a Schema, as records whose fields are found by name.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wire/schema.h"

namespace tt::runtime::wire {

// A row of a table that is keyed by the names of an enum's members or by strings.
template <typename Value>
struct Named {
  std::string_view name;
  Value value;
};

// One table or struct of a buffer that verify() accepted. It only refers to the buffer, which must outlive
// it. A field that this schema version does not have reads as absent.
class Record {
 public:
  Record(const Schema* schema, const Type* type, const uint8_t* at) : schema_(schema), type_(type), at_(at) {}

  const char* type_name() const { return type_->name; }
  bool has(std::string_view field) const;

  // Scalars. An absent field has its default from the schema. A field of an enum has no number here, because
  // the numbers of an enum differ between schemas: use name_in() or choose().
  int64_t integer(std::string_view field) const;
  double real(std::string_view field) const;
  bool flag(std::string_view field) const { return integer(field) != 0; }
  std::optional<int64_t> maybe_integer(std::string_view field) const;
  std::optional<double> maybe_real(std::string_view field) const;

  // The text of a string field, or the name of an enum field's value in the schema of this file. An absent
  // enum has its default. Returns nothing for a field that is absent and has no default.
  std::optional<std::string_view> name_in(std::string_view field) const;
  // The value of the row whose name is the field's value. Throws an UnsupportedBinary error if there is none.
  template <typename Value, size_t count>
  const Value& choose(std::string_view field, const Named<Value> (&rows)[count]) const {
    const auto name = name_in(field);
    for (const auto& row : rows)
      if (name == row.name) return row.value;
    unsupported(field);
  }
  // Throws an UnsupportedBinary error: the runtime does not know the name of the field's value.
  [[noreturn]] void unsupported(std::string_view field) const;

  std::string_view text(std::string_view field) const;  // a view of the buffer
  std::optional<Record> record(std::string_view field) const;
  // The member of a union.
  std::optional<Record> member(std::string_view field, std::string_view* name = nullptr) const;
  std::vector<Record> records(std::string_view field) const;
  std::vector<int64_t> integers(std::string_view field) const;
  std::vector<double> reals(std::string_view field) const;
  std::span<const uint8_t> bytes(std::string_view field) const;

  // Every record of the named type below this one, in field order.
  void collect(std::string_view type, std::vector<Record>& found) const;

 private:
  const Field* find(std::string_view field) const;
  const uint8_t* locate(const Field* field) const;  // null if the field is absent
  const uint8_t* follow(std::string_view field, Base base, const Field** found) const;

  const Schema* schema_;
  const Type* type_;
  const uint8_t* at_;
};

// Reads a number of an integer type from a buffer.
int64_t read_integer(Base base, const uint8_t* at);

// The schema whose hash is in the file. Throws a BinaryFormat or a Schema error.
const Schema& identify(std::span<const uint8_t> file);

// Checks every offset, length, string, alignment and enum that is reachable from the root. Returns the root,
// or throws a BinaryFormat error.
Record verify(std::span<const uint8_t> file, const Schema& schema);

}  // namespace tt::runtime::wire

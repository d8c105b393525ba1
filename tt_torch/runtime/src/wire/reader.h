// Reading a verified buffer through a Schema: records with fields by name.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wire/schema.h"

namespace tt::runtime::wire {

// A row of a table that is keyed by names: of an enum's members, or texts.
template <typename Value>
struct Named {
  std::string_view name;
  Value value;
};

// One table or struct of a buffer that verify() accepted. Cheap to copy; the buffer must outlive it.
// A field that this schema version does not know reads as absent.
class Record {
 public:
  Record(const Schema* schema, const Type* type, const uint8_t* at) : schema_(schema), type_(type), at_(at) {}

  const char* type_name() const { return type_->name; }
  bool has(std::string_view field) const;

  // Scalars: the default of the schema when the field is absent. Never of an enum, whose numbers mean nothing
  // without the schema.
  int64_t integer(std::string_view field) const;
  double real(std::string_view field) const;
  bool flag(std::string_view field) const { return integer(field) != 0; }
  std::optional<int64_t> maybe_integer(std::string_view field) const;
  std::optional<double> maybe_real(std::string_view field) const;

  // What a field says by name: the text of a string, or the member that an enum's value has in the schema of
  // this file. An absent enum has its default. Nothing for a field that is absent and has no default.
  std::optional<std::string_view> name_in(std::string_view field) const;
  // The value of the row whose name the field says. Throws UnsupportedBinary when there is none.
  template <typename Value, size_t count>
  const Value& choose(std::string_view field, const Named<Value> (&rows)[count]) const {
    const auto name = name_in(field);
    for (const auto& row : rows)
      if (name == row.name) return row.value;
    unsupported(field);
  }
  // Throws UnsupportedBinary: the runtime has nothing under the name that the field says.
  [[noreturn]] void unsupported(std::string_view field) const;

  std::string_view text(std::string_view field) const;  // lies in the buffer
  std::optional<Record> record(std::string_view field) const;
  std::optional<Record> member(std::string_view field, std::string_view* name = nullptr) const;  // of a union
  std::vector<Record> records(std::string_view field) const;
  std::vector<int64_t> integers(std::string_view field) const;
  std::vector<double> reals(std::string_view field) const;
  std::span<const uint8_t> bytes(std::string_view field) const;

  // Every record of the named type below this one, in field order.
  void collect(std::string_view type, std::vector<Record>& found) const;

 private:
  const Field* find(std::string_view field) const;
  const uint8_t* locate(const Field* field) const;  // null when absent
  const uint8_t* follow(std::string_view field, Base base, const Field** found) const;

  const Schema* schema_;
  const Type* type_;
  const uint8_t* at_;
};

// A number of an integer type, as it lies in a buffer.
int64_t read_integer(Base base, const uint8_t* at);

// The schema whose hash the file carries. Throws BinaryFormatError or SchemaError.
const Schema& identify(std::span<const uint8_t> file);

// Checks every offset, length, string, alignment and enum reachable from the root, then returns the root.
Record verify(std::span<const uint8_t> file, const Schema& schema);

}  // namespace tt::runtime::wire

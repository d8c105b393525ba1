// A schema in the form that encode.py makes of it, and the conversion of numbers and structs to bytes.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tt::wire {

namespace py = pybind11;

// Thrown for a value that its field does not accept.
struct Unfit {};

// The type of a field or of a vector's elements.
struct Value {
  // s: string, t: table, S: struct, u: union; all others are numbers, by their letters in Python's struct
  // module.
  char kind = 0;
  int ref = -1;                // position of its type (t, S) or enum (u, numbers); -1 for none
  size_t size = 0, align = 0;  // in bytes, as it is stored in a table, struct or vector

  bool is_offset() const { return kind == 's' || kind == 't' || kind == 'u'; }
};

struct Field {
  py::str name;
  Value value;
  bool is_vector;
  uint16_t place;  // slot in a table, offset in a struct
  // The bytes of the default: a number with these bytes is not written. Empty if all numbers are written.
  std::string omitted;
};

struct Type {
  std::string name;
  std::vector<Field> fields;
};

struct Member {
  uint8_t tag;
  int table;
};

struct Enum {
  py::dict values;  // name -> number; for a union: name -> position in `members`
  py::set numbers;  // the legal numbers
  bool flags;       // whether all numbers are legal
  std::vector<Member> members;
};

class Plan {
 public:
  Plan(std::string identifier, int root, const py::list& types, const py::list& enums);

  const std::string& identifier() const { return identifier_; }
  int root() const { return root_; }
  const Type& type(int position) const { return types_[static_cast<size_t>(position)]; }

  // The functions below throw Unfit or Python's own error for a value that they cannot convert.

  // Writes a number's little-endian bytes to `out`.
  void number(const Value& as, py::handle given, uint8_t* out) const;

  // Writes the fields of a struct to `out`, and nothing between them.
  void structure(const Type& type, py::handle given, uint8_t* out) const;

  const Member& member(int of_union, py::handle name) const;

 private:
  std::string identifier_;
  int root_;
  std::vector<Type> types_;
  std::vector<Enum> enums_;
};

}  // namespace tt::wire

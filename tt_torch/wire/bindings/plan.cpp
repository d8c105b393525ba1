#include "plan.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

namespace tt::wire {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are in memory");

namespace {

// The value of a key. Throws Unfit if there is none.
py::object find(const py::dict& from, py::handle key) {
  PyObject* found = PyDict_GetItemWithError(from.ptr(), key.ptr());
  if (!found && PyErr_Occurred()) throw py::error_already_set();
  if (!found) throw Unfit();
  return py::reinterpret_borrow<py::object>(found);
}

template <typename T>
void store(T value, uint8_t* out) {
  std::memcpy(out, &value, sizeof value);
}

template <typename T>
void integer(py::handle given, uint8_t* out) {
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(given.ptr()));
  if (!index) throw py::error_already_set();
  if constexpr (std::is_signed_v<T>) {
    const long long value = PyLong_AsLongLong(index.ptr());
    if (PyErr_Occurred()) throw py::error_already_set();
    if (!std::in_range<T>(value)) throw Unfit();
    store(static_cast<T>(value), out);
  } else {
    const unsigned long long value = PyLong_AsUnsignedLongLong(index.ptr());
    if (PyErr_Occurred()) throw py::error_already_set();
    if (!std::in_range<T>(value)) throw Unfit();
    store(static_cast<T>(value), out);
  }
}

template <typename T>
void real(py::handle given, uint8_t* out) {
  const double value = PyFloat_AsDouble(given.ptr());
  if (PyErr_Occurred()) throw py::error_already_set();
  const T rounded = static_cast<T>(value);
  if (std::isinf(rounded) && !std::isinf(value)) throw Unfit();
  store(rounded, out);
}

void truth(py::handle given, uint8_t* out) {
  if (!given.equal(py::bool_(true)) && !given.equal(py::bool_(false))) throw Unfit();
  store(given.equal(py::bool_(true)), out);
}

void plain(char kind, py::handle given, uint8_t* out) {
  switch (kind) {
    case '?':
      return truth(given, out);
    case 'b':
      return integer<int8_t>(given, out);
    case 'B':
      return integer<uint8_t>(given, out);
    case 'h':
      return integer<int16_t>(given, out);
    case 'H':
      return integer<uint16_t>(given, out);
    case 'i':
      return integer<int32_t>(given, out);
    case 'I':
      return integer<uint32_t>(given, out);
    case 'q':
      return integer<int64_t>(given, out);
    case 'Q':
      return integer<uint64_t>(given, out);
    case 'f':
      return real<float>(given, out);
    case 'd':
      return real<double>(given, out);
    default:
      throw std::logic_error(std::string("no such kind of number: ") + kind);
  }
}

Enum enum_of(const py::tuple& row) {
  const auto [values, numbers, flags, members] = row.cast<std::tuple<py::dict, py::set, bool, py::list>>();
  Enum made{values, numbers, flags, {}};
  for (const py::handle member : members) {
    const auto [tag, table] = member.cast<std::pair<uint8_t, int>>();
    made.members.push_back({tag, table});
  }
  return made;
}

Field field_of(const py::tuple& row) {
  const auto [name, kind, ref, size, align, is_vector, place] =
      row.cast<std::tuple<py::str, char, int, size_t, size_t, bool, uint16_t>>();
  return {name, {kind, ref, size, align}, is_vector, place, {}};
}

}  // namespace

Plan::Plan(std::string identifier, int root, const py::list& types, const py::list& enums)
    : identifier_(std::move(identifier)), root_(root) {
  for (const py::handle row : enums) enums_.push_back(enum_of(row.cast<py::tuple>()));
  for (const py::handle row : types) {
    const auto [name, fields] = row.cast<std::pair<std::string, py::list>>();
    Type& type = types_.emplace_back(Type{name, {}});
    for (const py::handle entry : fields) {
      const auto [values, omitted] = entry.cast<std::pair<py::tuple, py::object>>();
      Field& field = type.fields.emplace_back(field_of(values));
      if (omitted.is_none()) continue;
      field.omitted.resize(field.value.size);
      number(field.value, omitted, reinterpret_cast<uint8_t*>(field.omitted.data()));
    }
  }
}

void Plan::number(const Value& as, py::handle given, uint8_t* out) const {
  if (as.ref < 0) return plain(as.kind, given, out);
  const Enum& members = enums_[static_cast<size_t>(as.ref)];
  if (PyUnicode_Check(given.ptr())) return plain(as.kind, find(members.values, given), out);
  if (!members.flags && !members.numbers.contains(given)) throw Unfit();
  plain(as.kind, given, out);
}

void Plan::structure(const Type& type, py::handle given, uint8_t* out) const {
  if (!PyDict_Check(given.ptr())) throw Unfit();
  const auto values = py::reinterpret_borrow<py::dict>(given);
  if (values.size() != type.fields.size()) throw Unfit();  // a struct has no defaults
  for (const Field& field : type.fields) {
    const py::object value = find(values, field.name);
    if (field.value.kind == 'S')
      structure(this->type(field.value.ref), value, out + field.place);
    else
      number(field.value, value, out + field.place);
  }
}

const Member& Plan::member(int of_union, py::handle name) const {
  const Enum& members = enums_[static_cast<size_t>(of_union)];
  return members.members[find(members.values, name).cast<size_t>()];
}

}  // namespace tt::wire

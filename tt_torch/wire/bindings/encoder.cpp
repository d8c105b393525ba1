// Writes messages as bytes. encode.py describes messages and makes the plan.
#include <flatbuffers/flatbuffers.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <unordered_map>

#include "image.h"
#include "plan.h"

namespace tt::wire {

namespace {

// The size limit of a file, with room for the padding and the vtables around the last object.
constexpr size_t kLargest = FLATBUFFERS_MAX_BUFFER_SIZE - (1 << 20);

// A value that is not accepted, and the path to it.
struct Misfit {
  std::string table;
  py::object field, value;        // `field` is None if the value itself should be the table
  std::vector<std::string> path;  // the fields around it, from the innermost outwards
};

py::object borrow(PyObject* object) { return py::reinterpret_borrow<py::object>(object); }

// Counts towards Python's recursion limit, because messages may be cyclic if a schema has recursive tables.
// Our schemas have none.
class Deeper {
 public:
  Deeper() {
    if (Py_EnterRecursiveCall(" while a message is encoded")) throw py::error_already_set();
  }
  ~Deeper() { Py_LeaveRecursiveCall(); }
  Deeper(const Deeper&) = delete;
};

// Whether Python raised the error because a value has a wrong type or does not fit. memoryview raises
// NotImplementedError for a buffer whose elements it cannot convert to numbers.
bool is_misfit(const py::error_already_set& error) {
  const std::array kinds{PyExc_TypeError, PyExc_ValueError, PyExc_OverflowError, PyExc_BufferError,
                         PyExc_NotImplementedError};
  return std::any_of(kinds.begin(), kinds.end(), [&](PyObject* kind) { return error.matches(kind); });
}

// Calls `each` for the items of a list or tuple. The conversion of an item may run Python code that changes
// the list, so the size is read anew each time.
template <typename F>
void for_each(const py::object& items, F each) {
  if (!PyList_Check(items.ptr()) && !PyTuple_Check(items.ptr())) throw Unfit();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i)
    each(borrow(PySequence_Fast_GET_ITEM(items.ptr(), i)));
}

// Builds one file from its leaves up. Equal objects are written once.
class Encoder {
 public:
  explicit Encoder(const Plan& plan) : plan_(plan), builder_(1 << 16) {}

  py::bytes file(const py::object& message) {
    const flatbuffers::Offset<flatbuffers::Table> root(table(plan_.root(), message));
    builder_.FinishSizePrefixed(root, plan_.identifier().c_str());
    return {reinterpret_cast<const char*>(builder_.GetBufferPointer()), builder_.GetSize()};
  }

 private:
  template <typename SomeImage>
  uoffset_t once(SomeImage& image) {
    const auto found = by_content_.find(image.content());
    if (found != by_content_.end()) return found->second;
    require_place(image.content().size());
    return by_content_.emplace(image.content(), image.write(builder_)).first->second;
  }

  void require_place(size_t bytes) {
    if (builder_.GetSize() + bytes > kLargest)
      throw std::length_error("the message is too large: a binary cannot be larger than 2 GB");
  }

  // Adds the bytes of a buffer. Bytes that are not contiguous are copied to a temporary object first.
  void add_bytes(VectorImage& items, const py::memoryview& view) {
    const Py_buffer& buffer = *PyMemoryView_GET_BUFFER(view.ptr());
    require_place(static_cast<size_t>(buffer.len));
    if (PyBuffer_IsContiguous(&buffer, 'C'))
      items.add_all({static_cast<const char*>(buffer.buf), static_cast<size_t>(buffer.len)});
    else
      items.add_all(view.attr("tobytes")().cast<std::string_view>());
  }

  uoffset_t table(int type, const py::object& message) {
    const auto known = by_identity_.find(message.ptr());
    if (known != by_identity_.end() && known->second.first == type) return known->second.second;
    if (!PyDict_Check(message.ptr())) throw Misfit{plan_.type(type).name, py::none(), message, {}};
    const Deeper deeper;
    TableImage image(type);
    const Type& declared = plan_.type(type);
    Py_ssize_t entries = 0;
    for (const Field& field : declared.fields) {
      PyObject* value = PyDict_GetItemWithError(message.ptr(), field.name.ptr());
      if (PyErr_Occurred()) throw py::error_already_set();
      entries += value != nullptr;
      if (value && value != Py_None) enter(declared, field, borrow(value), image);
    }
    if (entries != PyDict_Size(message.ptr())) throw unknown(declared, message);
    const uoffset_t offset = once(image);
    if (by_identity_.emplace(message.ptr(), std::pair(type, offset)).second) alive_.push_back(message);
    return offset;
  }

  static Misfit unknown(const Type& type, const py::object& message) {
    for (const py::handle entry : py::list(message.attr("items")())) {
      const auto [name, value] = entry.cast<std::pair<py::object, py::object>>();
      const auto is_name = [&](const Field& field) { return field.name.equal(name); };
      if (std::none_of(type.fields.begin(), type.fields.end(), is_name)) return {type.name, name, value, {}};
    }
    throw std::runtime_error("a message changed while it was encoded");
  }

  void enter(const Type& type, const Field& field, const py::object& value, TableImage& image) {
    try {
      if (field.is_vector)
        put_vector(field, value, image);
      else
        put(field, value, image);
    } catch (Misfit& misfit) {
      misfit.path.push_back(type.name + "." + field.name.cast<std::string>());
      throw;
    } catch (const Unfit&) {
      throw Misfit{type.name, field.name, value, {}};
    } catch (const py::error_already_set& error) {
      if (!is_misfit(error)) throw;
      throw Misfit{type.name, field.name, value, {}};
    }
  }

  void put(const Field& field, const py::object& value, TableImage& image) {
    const Value& as = field.value;
    if (as.kind == 'u') {
      const auto [tag, offset] = member(as, value);
      *image.add(field.place - 1, 1, 1) = tag;
      image.add_offset(field.place, offset);
    } else if (as.is_offset()) {
      image.add_offset(field.place, object(as, value));
    } else if (as.kind == 'S') {
      plan_.structure(plan_.type(as.ref), value, image.add(field.place, as.size, as.align));
    } else {
      std::array<uint8_t, 8> bytes;
      plan_.number(as, value, bytes.data());
      if (std::string_view(reinterpret_cast<const char*>(bytes.data()), as.size) != field.omitted)
        std::copy_n(bytes.data(), as.size, image.add(field.place, as.size, as.align));
    }
  }

  void put_vector(const Field& field, const py::object& value, TableImage& image) {
    const Value& as = field.value;
    VectorImage items(as);
    if (as.kind == 'u') {
      VectorImage tags({'B', as.ref, 1, 1});
      for_each(value, [&](const py::object& item) {
        const auto [tag, offset] = member(as, item);
        *tags.add() = tag;
        items.add_offset(offset);
      });
      image.add_offset(field.place - 1, once(tags));
    } else if (as.is_offset()) {
      for_each(value, [&](const py::object& item) { items.add_offset(object(as, item)); });
    } else {
      fill(items, as, value);
    }
    image.add_offset(field.place, once(items));
  }

  // Adds numbers or structs.
  void fill(VectorImage& items, const Value& as, const py::object& value) {
    if (!PyObject_CheckBuffer(value.ptr())) {
      for_each(value, [&](const py::object& item) {
        if (as.kind == 'S')
          plan_.structure(plan_.type(as.ref), item, items.add());
        else
          plan_.number(as, item, items.add());
      });
      return;
    }
    const py::memoryview view(value);
    if (view.attr("ndim").cast<int>() != 1) throw Unfit();
    if (as.kind == 'B' && as.ref < 0 && view.attr("format").cast<std::string>() == "B")
      add_bytes(items, view);
    else if (PyBytes_Check(value.ptr()) || PyByteArray_Check(value.ptr()))
      throw Unfit();
    else
      fill(items, as, view.attr("tolist")());
  }

  uoffset_t object(const Value& as, const py::object& value) {
    if (as.kind == 't') return table(as.ref, value);
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);  // a TypeError if it is no string
    if (!text) throw py::error_already_set();
    StringImage image({text, static_cast<size_t>(size)});
    return once(image);
  }

  // Returns the tag and the table of `{member: table}`.
  std::pair<uint8_t, uoffset_t> member(const Value& as, const py::object& value) {
    if (!PyDict_Check(value.ptr()) || PyDict_Size(value.ptr()) != 1) throw Unfit();
    PyObject *name = nullptr, *message = nullptr;
    Py_ssize_t position = 0;
    PyDict_Next(value.ptr(), &position, &name, &message);
    const py::object kept = borrow(message);
    const Member& found = plan_.member(as.ref, borrow(name));
    return {found.tag, table(found.table, kept)};
  }

  const Plan& plan_;
  flatbuffers::FlatBufferBuilder builder_;
  std::unordered_map<std::string, uoffset_t> by_content_;
  // A dict that occurs again is not read again. All dicts are kept alive, so that no two have the same
  // address.
  std::unordered_map<PyObject*, std::pair<int, uoffset_t>> by_identity_;
  std::vector<py::object> alive_;
};

}  // namespace
}  // namespace tt::wire

PYBIND11_MODULE(_encoder, module) {
  namespace py = pybind11;
  using namespace tt::wire;
  module.doc() = "Writes messages as bytes; see encode.py";
  py::class_<Plan>(module, "Plan").def(py::init<std::string, int, const py::list&, const py::list&>());
  // `error` makes the exception for a value that is not accepted.
  module.def("write", [](const Plan& plan, const py::object& message, const py::function& error) {
    try {
      return Encoder(plan).file(message);
    } catch (const Misfit& misfit) {
      const py::object made = error(misfit.table, misfit.field, misfit.value, misfit.path);
      PyErr_SetObject(py::type::handle_of(made).ptr(), made.ptr());
      throw py::error_already_set();
    }
  });
}

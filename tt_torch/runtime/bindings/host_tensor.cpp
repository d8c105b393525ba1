#include "host_tensor.h"

#include <dlpack.h>

#include "tt/runtime/error.h"

namespace py = pybind11;

namespace tt::runtime {

namespace {

[[noreturn]] void refuse(const std::string& who, const std::string& got) {
  throw Error(ErrorKind::InputDtype,
              who + ": got " + got + ", expected a tensor of real numbers on the CPU or on tt");
}

std::string type_name(py::handle object) { return Py_TYPE(object.ptr())->tp_name; }

// The DLPack table that the class of a tensor publishes. The class of the last call is cached.
const DLPackExchangeAPI* exchange_of(py::handle tensor, const std::string& who) {
  static PyTypeObject* known = nullptr;  // the GIL guards both variables
  static const DLPackExchangeAPI* exchange = nullptr;
  if (Py_TYPE(tensor.ptr()) == known) return exchange;
  const py::handle type(reinterpret_cast<PyObject*>(Py_TYPE(tensor.ptr())));
  const py::object capsule = py::getattr(type, "__dlpack_c_exchange_api__", py::none());
  if (capsule.is_none()) refuse(who, type_name(tensor));
  const auto* found =
      static_cast<const DLPackExchangeAPI*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (!found) throw py::error_already_set();
  if (found->header.version.major != DLPACK_MAJOR_VERSION || !found->dltensor_from_py_object_no_sync)
    refuse(who, type_name(tensor) + " of another DLPack version");
  Py_INCREF(type.ptr());  // keeps the class alive, so that no other class gets its address
  known = reinterpret_cast<PyTypeObject*>(type.ptr());
  return exchange = found;
}

DataType integer_of(const DLDataType& type, const std::string& who) {
  const bool is_signed = type.code == kDLInt;
  switch (type.bits) {
    case 8:
      return is_signed ? DataType::Int8 : DataType::UInt8;
    case 16:
      return is_signed ? DataType::Int16 : DataType::UInt16;
    case 32:
      return is_signed ? DataType::Int32 : DataType::UInt32;
    case 64:
      return is_signed ? DataType::Int64 : DataType::UInt64;
    default:
      refuse(who, "integers of " + std::to_string(type.bits) + " bits");
  }
}

DataType type_of(const DLDataType& type, const std::string& who) {
  if (type.lanes == 1) {
    if (type.code == kDLInt || type.code == kDLUInt) return integer_of(type, who);
    if (type.code == kDLFloat && type.bits == 32) return DataType::Float32;
    if (type.code == kDLFloat && type.bits == 16) return DataType::Float16;
    if (type.code == kDLFloat && type.bits == 64) return DataType::Float64;
    if (type.code == kDLBfloat && type.bits == 16) return DataType::BFloat16;
    if (type.code == kDLBool && type.bits == 8) return DataType::Bool;
  }
  refuse(who, type.code == kDLComplex ? "complex" + std::to_string(type.bits) : "an unknown type");
}

DLTensor view_of(py::handle tensor, const std::string& who) {
  DLTensor view{};
  if (exchange_of(tensor, who)->dltensor_from_py_object_no_sync(tensor.ptr(), &view) == 0) return view;
  const py::error_already_set error;  // takes over the current Python error
  const std::string reason = py::str(error.value());
  if (py::getattr(tensor, "is_meta", py::bool_(false)).cast<bool>())
    refuse(who, type_name(tensor) + " on meta, which has no values");
  refuse(who, type_name(tensor) + " (" + reason.substr(0, reason.find('\n')) + ")");  // without a C++ stack
}

}  // namespace

HostBuffer host_buffer(py::handle tensor, const std::string& who) {
  const DLTensor view = view_of(tensor, who);
  const bool on_device =
      view.device.device_type == kDLExtDev;  // device "tt"; the runtime can read its memory
  if (view.device.device_type != kDLCPU && !on_device) refuse(who, "a tensor on another device");
  HostBuffer buffer{
      static_cast<char*>(view.data) + view.byte_offset, {}, {}, type_of(view.dtype, who), on_device};
  buffer.shape.assign(view.shape, view.shape + view.ndim);
  if (view.strides) {
    buffer.strides.assign(view.strides, view.strides + view.ndim);
  } else {
    buffer.strides.resize(view.ndim, 1);
    for (int i = view.ndim - 1; i > 0; --i) buffer.strides[i - 1] = buffer.strides[i] * view.shape[i];
  }
  bool empty = false;
  for (int64_t size : buffer.shape) empty |= size == 0;
  if (!view.data && !empty) refuse(who, type_name(tensor) + " without memory");
  return buffer;
}

const void* data_pointer(py::handle tensor, const std::string& who) {
  const DLTensor view = view_of(tensor, who);
  return static_cast<const char*>(view.data) + view.byte_offset;
}

}  // namespace tt::runtime

// Python bindings. They convert arguments and errors, and release the GIL. Tensors arrive through DLPack, so
// nothing here depends on torch.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "host_tensor.h"
#include "tt/runtime/runtime.h"

namespace py = pybind11;
using namespace tt::runtime;

namespace {

// A contiguous tensor that is passed to a callback: data pointer, shape, data type.
using Shown = std::tuple<uintptr_t, std::vector<int64_t>, DataType>;

// Keeps a Python object alive from C++. The last reference may be dropped by a thread that does not hold the
// GIL.
std::shared_ptr<void> keep(py::object owner) {
  return {new py::object(std::move(owner)), [](void* pointer) {
            if (!Py_IsInitialized()) return;
            py::gil_scoped_acquire gil;
            delete static_cast<py::object*>(pointer);
          }};
}

// Converts a text of a binary to a Python string. The text may have any bytes; invalid UTF-8 is replaced.
py::str text(std::string_view bytes) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
}

void translate(const Error& error) {
  const py::object type = py::module_::import("tt_torch.errors").attr(error.class_name());
  PyErr_SetObject(type.ptr(), text(error.what()).ptr());
}

// The resident inputs of a program. They can be passed again while `holds` and `same` are true. `holds` means
// that the inputs are the same objects with the same memory. `same` means that this memory has the same
// values. The caller must check that these objects are alive.
class Residents {
 public:
  using Entry =
      std::tuple<size_t, Tensor, std::optional<Fingerprint>, py::object>;  // no fingerprint of a state

  Residents(size_t count, const std::vector<Entry>& tensors) : inputs_(count) {
    for (const auto& [position, tensor, memory, source] : tensors) {
      inputs_.at(position) = tensor;
      if (memory) memory_.push_back(*memory);
      sources_.push_back({position, source.ptr(), data_pointer(source, "a resident input")});
    }
  }

  const std::vector<Input>& inputs() const { return inputs_; }

  bool holds(const py::sequence& inputs) const {
    if (inputs.size() != inputs_.size()) return false;
    for (const Source& source : sources_) {
      const py::object given = inputs[source.position];
      if (given.ptr() != source.object || data_pointer(given, "a resident input") != source.data)
        return false;
    }
    return true;
  }

  bool same(bool whole) {
    return std::all_of(memory_.begin(), memory_.end(),
                       [&](Fingerprint& memory) { return memory.same(whole); });
  }

 private:
  struct Source {
    size_t position;
    PyObject* object;  // a borrowed pointer that is only compared
    const void* data;
  };
  std::vector<Input> inputs_;  // one per position; an input that is not resident is an empty buffer
  std::vector<Source> sources_;
  std::vector<Fingerprint> memory_;
};

// A tensor on a device. `make` is Tensor::create or Tensor::state.
template <auto make, typename... More>
Tensor make_tensor(const Device& device, const TensorSpec& spec, py::object source, py::object owner,
                   const std::string& who, More... more) {
  const HostBuffer buffer = host_buffer(source, who);
  auto held = keep(std::move(owner));
  py::gil_scoped_release release;
  return make(device, spec, buffer, std::move(held), who, more...);
}

// Runs the program. A result is not written if its output is None.
void run(Executable& self, const py::sequence& inputs, const Residents* residents,
         const py::sequence& outputs) {
  std::vector<Input> arguments = residents ? residents->inputs() : std::vector<Input>();
  arguments.resize(inputs.size());
  for (size_t i = 0; i < arguments.size(); ++i)
    if (std::holds_alternative<HostBuffer>(arguments[i]))
      arguments[i] = host_buffer(inputs[i], "input " + std::to_string(i));
  std::vector<HostBuffer> targets;
  for (size_t i = 0; i < outputs.size(); ++i)
    targets.push_back(outputs[i].is_none() ? HostBuffer{.unwanted = true}
                                           : host_buffer(outputs[i], "output " + std::to_string(i)));
  py::gil_scoped_release release;
  self.run(arguments, targets);
}

// An error of a Python kernel on its way through the runtime. It is no std::exception, so that the runtime
// passes it unchanged.
struct PythonError {
  std::shared_ptr<py::error_already_set> error;
};

// Calls a Python function from a thread of the runtime.
template <typename... Arguments>
void call(const std::shared_ptr<void>& function, const Arguments&... arguments) {
  try {
    (*static_cast<py::object*>(function.get()))(arguments...);
  } catch (py::error_already_set& error) {
    throw PythonError{std::make_shared<py::error_already_set>(std::move(error))};
  }
}

// Sets the options of a mesh that this process shares with others. `gather(op, own, all)` gets `own` and
// `all` as address, shape and type.
void share(DeviceOptions& options, int64_t first_chip, int64_t own_chips, py::object gather) {
  options.first_chip = first_chip;
  options.own_chips = own_chips;
  options.gather = [gather = keep(std::move(gather))](const std::string& op, std::span<const std::byte> own,
                                                      std::span<std::byte> all) {
    py::gil_scoped_acquire gil;
    const auto shown = [](auto bytes) {
      return Shown(reinterpret_cast<uintptr_t>(bytes.data()), {static_cast<int64_t>(bytes.size())},
                   DataType::UInt8);
    };
    call(gather, text(op), shown(own), shown(all));
  };
}

// Registers a Python function as the kernel of an op: `kernel(op, arguments, location, inputs, outputs)`.
void add_kernel(const std::string& op, py::object kernel) {
  register_kernel(op, [kernel = keep(std::move(kernel))](const CustomCall& op) {
    py::gil_scoped_acquire gil;
    const auto shown = [](const std::vector<HostBuffer>& buffers) {
      std::vector<Shown> all;
      for (const auto& buffer : buffers)
        all.emplace_back(reinterpret_cast<uintptr_t>(buffer.data), buffer.shape, buffer.dtype);
      return all;
    };
    call(kernel, text(op.op), text(op.arguments), text(op.location), shown(op.inputs), shown(op.outputs));
  });
}

// Releases the GIL before it waits for a lock of the runtime, because the lock's owner may need the GIL.
void set_callback(Executable& self, py::object callback) {
  OpCallback forward;
  if (!callback.is_none()) {
    forward = [callback = keep(std::move(callback))](const OpEvent& event) {
      py::gil_scoped_acquire gil;
      std::vector<Shown> outputs;
      for (const auto& output : event.outputs)
        outputs.emplace_back(reinterpret_cast<uintptr_t>(output.data), output.shape, output.dtype);
      (*static_cast<py::object*>(callback.get()))(text(event.op), text(event.location),
                                                  text(event.debug_info), text(event.program), outputs);
    };
  }
  py::gil_scoped_release release;
  self.set_callback(std::move(forward));
}

py::dict program_memory(const Executable& self) {
  const ProgramMemory memory = [&] {
    py::gil_scoped_release release;
    return self.memory();
  }();
  using namespace py::literals;
  return py::dict("dram_peak"_a = memory.dram_peak, "l1_peak"_a = memory.l1_peak,
                  "host_arena"_a = memory.host_arena);
}

py::dict device_memory(const Device& self, BufferType space) {
  const MemoryStats s = [&] {
    py::gil_scoped_release release;
    return self.memory(space);
  }();
  std::vector<std::pair<py::str, int64_t>> live;
  for (const auto& buffer : s.live) live.emplace_back(text(buffer.name), buffer.bytes);
  using namespace py::literals;
  return py::dict("total"_a = s.total, "allocated"_a = s.allocated, "peak"_a = s.peak,
                  "largest_free"_a = s.largest_free, "banks"_a = s.banks, "live"_a = live);
}

void bind_types(py::module_& m) {
  auto dtype = py::enum_<DataType>(m, "DataType");
  for (int i = 0; i <= static_cast<int>(DataType::Bool); ++i)
    dtype.value(name(static_cast<DataType>(i)), static_cast<DataType>(i));
  py::enum_<Arch>(m, "Arch").value("wormhole_b0", Arch::WormholeB0).value("blackhole", Arch::Blackhole);
  py::enum_<BufferType>(m, "BufferType")
      .value("dram", BufferType::Dram)
      .value("l1", BufferType::L1)
      .value("host", BufferType::Host);
  py::class_<TensorSpec>(m, "TensorSpec")
      .def_readonly("shape", &TensorSpec::shape)
      .def_readonly("dtype", &TensorSpec::dtype)
      .def_property_readonly("layout", [](const TensorSpec& s) { return name(s.layout); })
      .def_property_readonly("buffer", [](const TensorSpec& s) { return name(s.buffer); })
      .def_property_readonly("memory_layout", [](const TensorSpec& s) { return name(s.memory_layout); })
      .def("__repr__", [](const TensorSpec& s) { return "<TensorSpec " + describe(s) + ">"; });
  py::class_<ProgramInfo>(m, "ProgramInfo")
      .def_property_readonly("name", [](const ProgramInfo& self) { return text(self.name); })
      .def_readonly("private", &ProgramInfo::is_private)
      .def_readonly("mesh_shape", &ProgramInfo::mesh_shape)
      .def_readonly("inputs", &ProgramInfo::inputs)
      .def_readonly("outputs", &ProgramInfo::outputs);
}

void bind_device(py::module_& m) {
  py::class_<DeviceOptions>(m, "DeviceOptions")
      .def(py::init<>())
      .def_readwrite("arch", &DeviceOptions::arch)
      .def_readwrite("mesh_shape", &DeviceOptions::mesh_shape)
      .def_readwrite("device_ids", &DeviceOptions::device_ids)
      .def_readwrite("num_hw_cqs", &DeviceOptions::num_hw_cqs)
      .def_readwrite("l1_small_size", &DeviceOptions::l1_small_size)
      .def_readwrite("dram_bank_size", &DeviceOptions::dram_bank_size)
      .def_readwrite("l1_bank_size", &DeviceOptions::l1_bank_size)
      .def_readwrite("host_memory_size", &DeviceOptions::host_memory_size)
      .def_readwrite("allow_host_code", &DeviceOptions::allow_host_code)
      .def_readwrite("exact", &DeviceOptions::exact)
      .def("share", &share);
  py::class_<Device>(m, "Device")
      .def(py::init([](const DeviceOptions& options) { return Device::open(options); }))
      .def_static("shared", &Device::shared, py::arg("arch"), py::arg("chip") = 0)
      .def_property_readonly("options", &Device::options)
      .def_property_readonly("is_open", &Device::is_open)
      .def("submesh", &Device::submesh)
      .def("close", &Device::close, py::call_guard<py::gil_scoped_release>())
      .def("memory", &device_memory);
}

void bind_execution(py::module_& m) {
  py::class_<Binary>(m, "Binary")
      .def(py::init([](py::buffer bytes) {
        const py::buffer_info info = bytes.request();
        return Binary::load(
            {static_cast<const std::byte*>(info.ptr), static_cast<size_t>(info.size * info.itemsize)});
      }))
      .def_property_readonly("programs", &Binary::programs)
      .def_property_readonly("schema_hash", &Binary::schema_hash)
      .def_property_readonly("version", &Binary::version);
  py::class_<Tensor>(m, "Tensor")
      .def(py::init(&make_tensor<Tensor::create, bool>), py::arg("device"), py::arg("spec"),
           py::arg("source"), py::arg("owner"), py::arg("who"), py::arg("counts") = true)
      .def_static("state", &make_tensor<Tensor::state>)
      .def("release", &Tensor::release, py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("version", &Tensor::version)
      .def_property_readonly("spec", &Tensor::spec);
  py::class_<Fingerprint>(m, "Fingerprint")
      .def(py::init([](py::object source, const std::string& who) {
        const HostBuffer buffer = host_buffer(source, who);
        py::gil_scoped_release release;
        return Fingerprint(buffer);
      }))
      .def("same", &Fingerprint::same, py::arg("whole") = false, py::call_guard<py::gil_scoped_release>())
      .def_static("use_write_tracking", &Fingerprint::use_write_tracking);
  py::class_<Residents>(m, "Residents")
      .def(py::init<size_t, const std::vector<Residents::Entry>&>())
      .def("holds", &Residents::holds)
      .def("same", &Residents::same, py::call_guard<py::gil_scoped_release>());
  py::class_<Executable>(m, "Executable")
      .def(py::init<const Binary&, size_t, const Device&>(), py::call_guard<py::gil_scoped_release>())
      .def("run", &run)
      .def("set_callback", &set_callback)
      .def_property_readonly("info", &Executable::info)
      .def_property_readonly("memory", &program_memory);
  m.def("register_kernel", &add_kernel);
}

std::map<std::string, HostBuffer> named(const py::dict& tensors) {
  std::map<std::string, HostBuffer> found;
  for (const auto& [name, tensor] : tensors)
    found[name.cast<std::string>()] = host_buffer(tensor, name.cast<std::string>());
  return found;
}

// The reader of packages for C++. Python has one of its own, so this is for tests.
void bind_package(py::module_& m) {
  py::class_<NamedTensor>(m, "NamedTensor")
      .def_readonly("name", &NamedTensor::name)
      .def_readonly("shape", &NamedTensor::shape)
      .def_readonly("dtype", &NamedTensor::dtype);
  py::class_<Package>(m, "Package")
      .def(py::init(&Package::load), py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("inputs", &Package::inputs)
      .def_property_readonly("outputs", &Package::outputs)
      .def("run", [](Package& self, const py::dict& inputs, const py::dict& outputs) {
        const auto given = named(inputs), results = named(outputs);
        py::gil_scoped_release release;
        self.run(given, results);
      });
}

std::span<float> floats(py::buffer& buffer) {
  const py::buffer_info info = buffer.request(true);
  if (info.itemsize != 4) throw py::type_error("expected a writable buffer of float32");
  return {static_cast<float*>(info.ptr), static_cast<size_t>(info.size)};
}

void bind_block_float(py::module_& m) {
  m.def("pack_tile", [](py::buffer tile, DataType dtype) {
    const auto bytes = pack_tile(floats(tile), dtype);
    return py::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  m.def("unpack_tile", [](const py::bytes& bytes, DataType dtype) {
    const std::string_view view = bytes;
    const auto tile = unpack_tile({reinterpret_cast<const uint8_t*>(view.data()), view.size()}, dtype);
    // As bytes, because a Python float would turn a signalling NaN into a quiet one.
    return py::bytes(reinterpret_cast<const char*>(tile.data()), tile.size() * sizeof(float));
  });
  m.def("round_to_blocks", [](py::buffer values, int64_t columns, DataType dtype) {
    round_to_blocks(floats(values), columns, dtype);
  });
}

}  // namespace

PYBIND11_MODULE(_runtime, m) {
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const Error& error) {
      translate(error);
    } catch (const PythonError& error) {
      error.error->restore();
    }
  });
  bind_types(m);
  bind_device(m);
  bind_execution(m);
  bind_package(m);
  bind_block_float(m);
}

// Python bindings for functions of the device that torch.accelerator does not have.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "tt/device/device.h"

namespace py = pybind11;

PYBIND11_MODULE(_device, m) {
  m.def("device_count", &tt::device::device_count);
  m.def("fallback_counts", &tt::device::fallback_counts);
  m.def("clear_fallback_counts", &tt::device::clear_fallback_counts);
  m.def("manual_seed", &tt::device::manual_seed);
  m.def("initial_seed", &tt::device::initial_seed);
  m.def("rng_state", [](int64_t device) { return py::bytes(tt::device::rng_state(device)); });
  m.def("set_rng_state", [](int64_t device, const py::bytes& state) {
    tt::device::set_rng_state(device, static_cast<std::string>(state));
  });
}

#include "tt/runtime/package.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/randint.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "aten_only.h"
#include "failure.h"
#include "package/manifest.h"
#include "tt/runtime/error.h"
#include "tt/runtime/executable.h"
#include "values.h"

namespace tt::runtime {

using package::Form, package::GraphInput, package::Manifest, package::ProgramForm, package::View;
using Buffers = std::map<std::string, HostBuffer>;

namespace {

constexpr const char* kCompiled = ", but the model was compiled for ";

[[noreturn]] void malformed(const std::string& what) {
  throw Error(ErrorKind::Package, "has a malformed manifest: " + what);
}

// A program of a package with its constants, which stay on the device.
struct LoadedProgram {
  Executable executable;
  ProgramForm form;
  std::vector<Tensor> constants;

  // Runs the program. The results have the types and strides that the manifest gives.
  std::vector<at::Tensor> run(std::vector<Input> inputs) {
    inputs.insert(inputs.end(), constants.begin(), constants.end());
    std::vector<at::Tensor> results;
    std::vector<HostBuffer> buffers;
    for (size_t i = 0; i < form.output_dtypes.size(); ++i) {
      const auto& shape = executable.info().outputs[i].shape;
      const bool plain = form.output_strides.empty() || !form.output_strides[i];
      const auto strides = plain ? row_major_strides(shape) : *form.output_strides[i];
      results.push_back(at::empty_strided(shape, strides, host_type(form.output_dtypes[i])));
      buffers.push_back({results[i].data_ptr(), shape, strides, form.output_dtypes[i]});
    }
    executable.run(inputs, buffers);
    return results;
  }
};

// The lowest and the highest of the integers; two zeros if there are none.
std::pair<int64_t, int64_t> extremes(const HostBuffer& integers) {
  const at::Tensor x = view_of(integers);
  if (!x.numel()) return {0, 0};
  const auto [low, high] = at::aminmax(x.to(at::kLong));
  return {low.item<int64_t>(), high.item<int64_t>()};
}

at::Tensor view(const at::Tensor& source, const View& of) {
  return source.as_strided(of.shape, of.strides, source.storage_offset() + of.offset);
}

void check_form(const std::string& name, const HostBuffer& got, const Form& form) {
  if (got.shape != form.shape)
    throw Error(ErrorKind::InputShape,
                name + " has the shape " + describe(got.shape) + kCompiled + describe(form.shape));
  if (got.dtype != form.dtype)
    throw Error(ErrorKind::InputDtype,
                name + " has the type " + runtime::name(got.dtype) + kCompiled + runtime::name(form.dtype));
  if (form.strides && got.strides != *form.strides)
    throw Error(
        ErrorKind::Argument,
        name + " has other strides than the model was compiled for, and its results share this memory");
}

// The bytes from the first element to the last one.
std::pair<const std::byte*, const std::byte*> extent(const HostBuffer& buffer) {
  const auto* begin = static_cast<const std::byte*>(buffer.data);
  const at::Tensor x = view_of(buffer);
  return {begin, begin + (x.numel() ? x.storage().nbytes() : 0)};
}

bool overlap(const HostBuffer& a, const HostBuffer& b) {
  const auto [a_begin, a_end] = extent(a);
  const auto [b_begin, b_end] = extent(b);
  return a_begin < b_end && b_begin < a_end;
}

}  // namespace

struct Package::Impl {
  Impl(package::File opened, const Device& device)
      : file(std::move(opened)), manifest(package::read_manifest(file)), main(load("main", device)) {
    if (manifest.programs.contains("check")) check.emplace(load("check", device));
    check_programs();
    for (size_t i = 0; i < manifest.tensors.size(); ++i) keep(i, device);
    for (const auto& [name, form] : manifest.arguments) inputs.push_back({name, form.shape, form.dtype});
    for (const auto& output : manifest.outputs) outputs.push_back(describe_output(output));
  }

  void run(const Buffers& given, const Buffers& results);

  const package::File file;
  const Manifest manifest;
  LoadedProgram main;
  std::optional<LoadedProgram> check;
  std::map<size_t, Tensor> residents;  // weights on the device, by position among the inputs of the program
  std::vector<NamedTensor> inputs, outputs;
  std::mutex mutex;

 private:
  LoadedProgram load(const std::string& name, const Device& device) const;
  void check_programs() const;
  void keep(size_t position, const Device& device);
  NamedTensor describe_output(const package::Output& output) const;
  HostBuffer weight(const std::string& name) const { return file.tensors.at("weight/" + name).buffer(); }
  std::vector<HostBuffer> bind(const Buffers& given) const;
  void check_limits(const std::vector<HostBuffer>& inputs) const;
  void check_exact(const std::vector<Input>& arguments);
  void check_wide(const at::Tensor& number) const;
  std::vector<at::Tensor> graph_results(const std::vector<at::Tensor>& inputs,
                                        const std::vector<at::Tensor>& results) const;
};

LoadedProgram Package::Impl::load(const std::string& name, const Device& device) const {
  const ProgramForm& form = manifest.programs.at(name);
  const Binary binary = Binary::load(file.tensors.at("program/" + name).bytes);
  LoadedProgram program{Executable(binary, 0, device), form, {}};
  const auto& specs = program.executable.info().inputs;
  if (specs.size() < form.constants) malformed("the program " + name + " has fewer inputs than constants");
  for (size_t i = 0; i < form.constants; ++i) {
    const std::string constant = "constant/" + name + "/" + std::to_string(i);
    const TensorSpec& spec = specs[specs.size() - form.constants + i];
    program.constants.push_back(
        Tensor::create(device, spec, file.tensors.at(constant).buffer(), file.memory, constant));
  }
  if (program.executable.info().outputs.size() != form.output_dtypes.size())
    malformed("the program " + name + " has another number of results");
  return program;
}

void Package::Impl::check_programs() const {
  const ProgramInfo& info = main.executable.info();
  const size_t seeds = manifest.seeds ? 1 : 0;
  if (info.inputs.size() != manifest.tensors.size() + seeds + main.constants.size())
    malformed("the program main has another number of inputs");
  if (!check) return;
  const ProgramInfo& other = check->executable.info();
  if (other.inputs.size() != manifest.checked.size() + check->constants.size() || other.outputs.size() != 1 ||
      checked_volume(other.outputs[0].shape) != 1)
    malformed("the program check has other inputs or results");
}

// A weight that the model does not change stays on the device.
void Package::Impl::keep(size_t position, const Device& device) {
  const size_t input = manifest.tensors[position];
  const GraphInput& of = manifest.inputs[input];
  if (!of.is_weight || std::ranges::find(manifest.written, input) != manifest.written.end()) return;
  const TensorSpec& spec = main.executable.info().inputs[position];
  residents[position] = Tensor::create(device, spec, weight(of.name), file.memory, of.name);
}

NamedTensor Package::Impl::describe_output(const package::Output& output) const {
  if (const auto* input = std::get_if<GraphInput>(&output.source)) {
    const Form& form = (input->is_weight ? manifest.weights : manifest.arguments).at(input->name);
    return {output.name, form.shape, form.dtype};
  }
  const size_t result = std::get<size_t>(output.source);
  if (const auto of = manifest.views.find(result); of != manifest.views.end())
    return {output.name, of->second.shape, manifest.form(of->second.source).dtype};
  const auto& place = manifest.places[result];
  const auto* of = std::get_if<View>(&place);
  const size_t source = of ? of->source : std::get<size_t>(place);
  const auto& shape = of ? of->shape : main.executable.info().outputs[source].shape;
  return {output.name, shape, main.form.output_dtypes[source]};
}

// Checks the given arguments, and returns the inputs of the graph.
std::vector<HostBuffer> Package::Impl::bind(const Buffers& given) const {
  for (const auto& [name, form] : manifest.arguments) {
    const auto found = given.find(name);
    if (found == given.end())
      throw Error(ErrorKind::Argument, name + " is missing; the model was compiled with it");
    check_form(name, found->second, form);
  }
  for (const auto& [name, _] : given)
    if (!manifest.arguments.contains(name))
      throw Error(ErrorKind::Argument, name + " is given, but the model was compiled without it");
  std::vector<HostBuffer> found;
  for (const GraphInput& of : manifest.inputs)
    found.push_back(of.is_weight ? weight(of.name) : given.at(of.name));
  for (const size_t i : manifest.written)
    for (size_t k = 0; k < found.size(); ++k)
      if (k != i && overlap(found[i], found[k]))
        throw Error(ErrorKind::Argument, "the model writes to " + manifest.inputs[i].name +
                                             ", which shares memory with " + manifest.inputs[k].name +
                                             "; pass a copy");
  return found;
}

void Package::Impl::check_limits(const std::vector<HostBuffer>& inputs) const {
  for (const auto& [position, limit] : manifest.limits) {
    const auto [low, high] = extremes(inputs[manifest.tensors[position]]);
    // A long double holds each number of 64 bits exactly.
    if (static_cast<long double>(low) >= static_cast<long double>(limit.low) &&
        static_cast<long double>(high) <= static_cast<long double>(limit.high))
      continue;
    const std::string because =
        limit.cause.empty() ? "" : ", beyond which " + limit.cause + " may leave the device's 32 bits";
    throw Error(ErrorKind::Inexact,
                "the device would not compute this call exactly: " + limit.name + " has values in " +
                    std::to_string(low) + " .. " + std::to_string(high) + "; the device is exact only in " +
                    std::to_string(limit.low) + " .. " + std::to_string(limit.high) + because);
  }
}

void Package::Impl::check_exact(const std::vector<Input>& arguments) {
  if (!check) return;
  std::vector<Input> inputs;
  for (const size_t i : manifest.checked) inputs.push_back(arguments[i]);
  if (!check->run(std::move(inputs))[0].item().toBool())
    throw Error(
        ErrorKind::Inexact,
        "the device would not compute this call exactly: a float does not fit into the integer that it "
        "becomes, or an index is out of range");
}

void Package::Impl::check_wide(const at::Tensor& number) const {
  const int64_t node = number.numel() == 1 ? number.item().toLong() : -1;
  if (node < 0 || node > static_cast<int64_t>(manifest.wide.size())) malformed("a check has another result");
  if (node)
    throw Error(ErrorKind::Inexact,
                "the device would not compute this call exactly: 64-bit integers of the node " +
                    manifest.wide[node - 1] + " leave the device's 32 bits");
}

std::vector<at::Tensor> Package::Impl::graph_results(const std::vector<at::Tensor>& inputs,
                                                     const std::vector<at::Tensor>& results) const {
  std::vector<at::Tensor> found;
  for (size_t i = 0; i < manifest.places.size(); ++i) {
    const auto of = manifest.views.find(i);
    if (of != manifest.views.end())
      found.push_back(view(inputs[of->second.source], of->second));
    else if (const auto* place = std::get_if<View>(&manifest.places[i]))
      found.push_back(view(results[place->source], *place));
    else
      found.push_back(results[std::get<size_t>(manifest.places[i])]);
  }
  return found;
}

void Package::Impl::run(const Buffers& given, const Buffers& wanted) {
  for (const auto& [name, buffer] : wanted) {
    const auto known = std::ranges::find(outputs, name, &NamedTensor::name);
    if (known == outputs.end()) throw Error(ErrorKind::Argument, "the model has no result " + name);
    check_form(name, buffer, {known->shape, known->dtype, std::nullopt});
  }
  const std::vector<HostBuffer> buffers = bind(given);
  check_limits(buffers);
  std::vector<Input> arguments;
  for (size_t i = 0; i < manifest.tensors.size(); ++i) {
    const auto kept = residents.find(i);
    arguments.push_back(kept == residents.end() ? Input(buffers[manifest.tensors[i]]) : Input(kept->second));
  }
  check_exact(arguments);
  at::Tensor seeds;
  if (manifest.seeds) {
    seeds = at::randint(-(int64_t{1} << 31), int64_t{1} << 31, {manifest.seeds, 2}, at::kInt);
    arguments.emplace_back(row_major(seeds.data_ptr(), {manifest.seeds, 2}, DataType::Int32));
  }
  const std::vector<at::Tensor> results = main.run(std::move(arguments));
  std::vector<at::Tensor> inputs;
  for (const HostBuffer& buffer : buffers) inputs.push_back(view_of(buffer));
  const std::vector<at::Tensor> found = graph_results(inputs, results);
  if (!manifest.wide.empty()) check_wide(found.back());
  for (size_t i = 0; i < manifest.written.size(); ++i) inputs[manifest.written[i]].copy_(found[i]);
  for (const auto& output : manifest.outputs) {
    const auto into = wanted.find(output.name);
    if (into == wanted.end()) continue;
    const auto* input = std::get_if<GraphInput>(&output.source);
    copy_out(!input             ? found[std::get<size_t>(output.source)]
             : input->is_weight ? view_of(weight(input->name))
                                : view_of(given.at(input->name)),
             into->second);
  }
}

Package Package::load(const std::string& path, const Device& device) {
  try {
    AtenOnly guard;
    return Package(guarded([&] { return std::make_shared<Impl>(package::open_file(path), device); },
                           [&] { return "loading " + path; }));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Package) throw;
    throw Error(error.kind(), path + " " + error.what());
  }
}

const std::vector<NamedTensor>& Package::inputs() const { return impl_->inputs; }
const std::vector<NamedTensor>& Package::outputs() const { return impl_->outputs; }

void Package::run(const Buffers& inputs, const Buffers& outputs) {
  AtenOnly guard;
  std::lock_guard lock(impl_->mutex);
  guarded([&] { impl_->run(inputs, outputs); }, [] { return std::string("running a package"); });
}

}  // namespace tt::runtime

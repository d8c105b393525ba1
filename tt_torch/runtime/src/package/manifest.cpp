#include "package/manifest.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "package/json.h"
#include "package/outputs.h"

namespace tt::runtime::package {

namespace {

constexpr int64_t kFormat = 1;
// The formats of packages that need Python, and why. They are those of manifest.py.
const std::map<int64_t, std::string> kOfPython = {
    {2, "it has a family of programs, for several sizes of its inputs"},
    {3, "it is for training, which takes PyTorch's autograd"},
    {4, "the host decides between its programs, in loops and branches"},
    {5, "its inputs or results are split over a mesh"},
    {6, "the host decides between the programs of its backward pass"},
};
constexpr int64_t kMostPositions = 1 << 20;
constexpr const char* kIn32Bits = "in_32_bits";  // a check of ours, as in calls.py
const std::set<std::string> kKnown = {"format",   "signature", "forms",  "weights", "inputs",  "tokens",
                                      "written",  "interface", "views",  "checks",  "limits",  "checked",
                                      "resident", "programs",  "places", "result",  "versions"};

[[noreturn]] void needs_python(const std::string& why) { refuse("needs Python: " + why); }

void require_cpu(const Json& device, const std::string& who) {
  if (text(device) != "cpu") needs_python(who + " is on " + text(device));
}

std::optional<std::vector<int64_t>> strides_of(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(naturals(json));
}

Form form_of(const Json& json, const std::string& who) {
  require_cpu(part(json, "device"), who);
  Form form{naturals(part(json, "shape")), dtype_named(text(part(json, "dtype")), who), std::nullopt};
  if (json.contains("strides")) form.strides = strides_of(json["strides"]);
  if (form.strides && form.strides->size() != form.shape.size())
    malformed(who + " has another number of strides than of dimensions");
  return form;
}

// The form of each argument that is a tensor. Containers and other values have a text instead.
std::map<std::string, Form> arguments_of(const Json& forms) {
  std::map<std::string, Form> found;
  for (const auto& [name, form] : forms.items())
    if (!form.is_string()) found.emplace(name, form_of(form, name));
  return found;
}

std::map<std::string, Form> weights_of(const Json& weights, const File& file) {
  std::map<std::string, Form> found;
  for (const auto& [name, json] : weights.items()) {
    Form form = form_of(json, name);
    const auto stored = file.tensors.find("weight/" + name);
    if (stored == file.tensors.end())
      refuse("has no weights, such as " + name + ": the C++ library needs a package with them");
    if (stored->second.shape != form.shape || stored->second.dtype != form.dtype)
      malformed(name + " has another form than its tensor");
    form.strides = stored->second.buffer().strides;
    found.emplace(name, std::move(form));
  }
  return found;
}

size_t position(const Json& json, size_t count) {
  if (!count) malformed("a position in an empty list");
  return static_cast<size_t>(natural(json, static_cast<int64_t>(count) - 1));
}

std::vector<size_t> positions(const Json& json, size_t count) {
  std::vector<size_t> found;
  for (const Json& number : json) found.push_back(position(number, count));
  return found;
}

// The position that a key of a JSON object means. The object stands for a map from positions.
size_t key_position(const std::string& key, size_t count) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
  if (error != std::errc() || end != key.data() + key.size() || number >= count)
    malformed("the position " + key + " is unknown");
  return number;
}

View view_of(const Json& json, const char* of, size_t sources) {
  View view{position(part(json, of), sources), naturals(part(json, "shape")), naturals(part(json, "strides")),
            natural(part(json, "offset"))};
  if (view.shape.size() != view.strides.size())
    malformed("a view has another number of strides than of dimensions");
  return view;
}

std::vector<GraphInput> inputs_of(const Json& json, const Manifest& manifest) {
  std::vector<GraphInput> found;
  for (const Json& input : json) {
    if (!input.is_array() || input.size() != 2) malformed("an input has another form");
    GraphInput of{boolean(input[0]), text(input[1])};
    const auto& known = of.is_weight ? manifest.weights : manifest.arguments;
    if (!known.contains(of.name)) malformed(of.name + " is unknown");
    found.push_back(std::move(of));
  }
  return found;
}

ProgramForm program_of(const Json& json, const std::string& name) {
  ProgramForm form{{}, {}, static_cast<size_t>(natural(part(json, "constants"), kMostPositions))};
  for (const Json& dtype : list(json, "output_dtypes"))
    form.output_dtypes.push_back(dtype_named(text(dtype), "a result of " + name));
  if (const Json& strides = part(json, "output_strides"); !strides.is_null()) {
    for (const Json& each : list(json, "output_strides")) form.output_strides.push_back(strides_of(each));
    if (form.output_strides.size() != form.output_dtypes.size()) malformed("not every result has strides");
  }
  if (const Json& devices = part(json, "output_devices"); !devices.is_null())
    for (const Json& device : list(json, "output_devices")) require_cpu(device, "a result");
  return form;
}

void read_programs(const Json& programs, const File& file, Manifest& manifest) {
  for (const auto& [name, json] : programs.items()) {
    if (name != "main" && name != "check") needs_python("it has a program with the name " + name);
    const ProgramForm& form = manifest.programs[name] = program_of(json, name);
    if (!file.tensors.contains("program/" + name)) malformed("the program " + name + " is missing");
    for (size_t i = 0; i < form.constants; ++i)
      if (!file.tensors.contains("constant/" + name + "/" + std::to_string(i)))
        malformed("a constant of the program " + name + " is missing");
  }
  if (!manifest.programs.contains("main")) malformed("the program main is missing");
}

void read_interface(const Json& interface, Manifest& manifest) {
  manifest.tensors = positions(list(interface, "inputs"), manifest.inputs.size());
  if (!list(interface, "complex_inputs").empty() || !list(interface, "complex_outputs").empty())
    needs_python("it has complex numbers");
  manifest.seeds = static_cast<int64_t>(list(interface, "seeds").size());
  for (const Json& device : interface["seeds"]) require_cpu(device, "a random number generator");
  for (const Json& output : list(interface, "outputs"))
    if (output != "tensor") needs_python("its graph gives " + shown(output) + ", which is no tensor");
  const size_t results = manifest.programs.at("main").output_dtypes.size();
  for (const Json& place : list(interface, "places")) {
    if (place.is_number()) {
      manifest.places.emplace_back(position(place, results));
      continue;
    }
    if (place.contains("view")) needs_python("a result reads the memory of another one in another type");
    manifest.places.emplace_back(view_of(place, "result", results));
    const size_t source = std::get<View>(manifest.places.back()).source;
    if (object(interface, "strides").contains(std::to_string(source)))
      needs_python("a result is a view of memory that has gaps");
  }
  if (manifest.places.size() != interface["outputs"].size()) malformed("a result of the graph has no place");
}

// Reads which results are views of an input of the graph. Such an input must have known strides.
void read_views(const Json& json, Manifest& manifest) {
  for (const auto& [key, view] : object(json, "views").items())
    manifest.views.emplace(key_position(key, manifest.places.size()),
                           view_of(view, "input", manifest.inputs.size()));
  size_t result = manifest.written.size();
  for (const Json& place : list(json, "places")) {
    if (result == manifest.places.size()) malformed("there are more places than results");
    if (!part(place, "argument").is_null())
      manifest.views.insert_or_assign(result, view_of(place, "argument", manifest.inputs.size()));
    ++result;
  }
  for (const auto& [_, view] : manifest.views)
    if (!manifest.form(view.source).strides)
      malformed("a result is a view of " + manifest.inputs[view.source].name + ", whose strides are unknown");
}

// Reads the nodes of the check of 64-bit integers. Its number is the last result of the program.
void read_checks(const Json& checks, Manifest& manifest) {
  if (checks.size() > 1) malformed("there are several checks of 64-bit integers");
  for (const Json& check : checks)
    for (const Json& node : list(check, "arguments")) manifest.wide.push_back(text(node));
  if (!manifest.wide.empty() && manifest.places.empty()) malformed("a check has no result");
}

void read_limits(const Json& limits, Manifest& manifest) {
  for (const auto& [key, json] : limits.items()) {
    const Json& interval = list(json, "interval");
    if (interval.size() != 2 || !interval[0].is_number() || !interval[1].is_number())
      malformed("an interval is not two numbers");
    const size_t input = key_position(key, manifest.tensors.size());
    const DataType dtype = manifest.form(manifest.tensors[input]).dtype;
    if (dtype < DataType::UInt32 || dtype == DataType::Float64 || dtype == DataType::UInt64)
      malformed("an input with a limit has no integers of int64");
    manifest.limits[input] = {text(part(json, "name")), text(part(json, "cause")), interval[0].get<double>(),
                              interval[1].get<double>()};
  }
}

// Compares the hashes. Programs that the manifest does not list are errors, too.
void check_tensors(const Json& hashes, const File& file) {
  if (hashes.size() != file.tensors.size())
    refuse("is damaged: its tensors are not those that its manifest lists");
  for (const auto& [name, tensor] : file.tensors) {
    if (!hashes.contains(name)) refuse("is damaged: its tensors are not those that its manifest lists");
    if (text(hashes[name]) != sha256(tensor.bytes)) refuse("is damaged: " + name + " has changed");
  }
}

void refuse_what_needs_python(const Json& json) {
  for (const std::string& key : kKnown) part(json, key.c_str());
  for (const auto& [key, value] : json.items())
    if (!kKnown.contains(key) && !value.empty()) needs_python("its manifest has " + key);
  for (const Json& check : list(json, "checks"))
    if (const std::string& op = text(part(check, "op")); op != kIn32Bits)
      needs_python("PyTorch checks its values on the host, by " + op);
  if (natural(part(json, "tokens"))) needs_python("its ops have an order that PyTorch keeps");
}

}  // namespace

Manifest read_manifest(const File& file) {
  const Json document = parse(file.manifest, "has a malformed manifest: ");
  const Json& format = part(document, "format");
  for (const auto& [known, why] : kOfPython)
    if (format == known) needs_python(why);
  if (format != kFormat)
    refuse("has the format " + shown(format) + ", but this library reads " + std::to_string(kFormat) +
           "; update it");
  check_tensors(object(document, "sha256"), file);
  const Json& json = object(document, "manifest");
  refuse_what_needs_python(json);
  Manifest manifest;
  manifest.arguments = arguments_of(object(json, "forms"));
  manifest.weights = weights_of(object(json, "weights"), file);
  manifest.inputs = inputs_of(list(json, "inputs"), manifest);
  manifest.written = positions(list(json, "written"), manifest.inputs.size());
  read_programs(object(json, "programs"), file, manifest);
  read_interface(object(json, "interface"), manifest);
  read_views(json, manifest);
  read_limits(object(json, "limits"), manifest);
  read_checks(list(json, "checks"), manifest);
  manifest.checked = positions(list(json, "checked"), manifest.tensors.size());
  if (manifest.written.size() > manifest.places.size())
    malformed("there are more written inputs than results");
  manifest.outputs = outputs_of(part(json, "result"), manifest, list(json, "places").size());
  return manifest;
}

}  // namespace tt::runtime::package

// The parts of a package's manifest that C++ can run. They have the same names as in
// tt_torch/driver/package/manifest.py, which describes them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "package/file.h"

namespace tt::runtime::package {

struct Form {
  std::vector<int64_t> shape;
  DataType dtype;
  std::optional<std::vector<int64_t>>
      strides;  // in elements; an argument has them if results share its memory
};

struct GraphInput {
  bool is_weight;
  std::string name;
};

struct View {
  size_t source;  // the position of a result of the program, or of an input of the graph
  std::vector<int64_t> shape, strides;
  int64_t offset;  // in elements, from the first one of the source
};

struct ProgramForm {
  std::vector<DataType> output_dtypes;
  // A result without strides is row-major. If the list is empty, all results are row-major.
  std::vector<std::optional<std::vector<int64_t>>> output_strides;
  size_t constants;
};

// The values of an integer input for which the program is exact.
struct Limit {
  std::string name, cause;
  double low, high;
};

struct Output {
  std::string name;
  std::variant<size_t, GraphInput> source;  // a result of the graph, or an input that the model returns
};

struct Manifest {
  std::map<std::string, Form> arguments;  // those that are tensors
  std::map<std::string, Form> weights;
  std::vector<GraphInput> inputs;  // of the graph
  std::vector<size_t> written;     // inputs of the graph, whose new values are its first results
  std::vector<size_t> tensors;     // for each input of the program, its position in `inputs`
  int64_t seeds;  // random ops; if there are any, the program has an input with two numbers each
  std::vector<std::variant<size_t, View>> places;  // for each result of the graph, the program's result
  std::map<size_t, View> views;                    // the results of the graph that are views of its inputs
  std::map<size_t, Limit> limits;                  // by position among the inputs of the program
  std::vector<size_t> checked;                     // inputs of the program that the program "check" takes
  std::map<std::string, ProgramForm> programs;     // "main", and "check" if there is one
  std::vector<std::string> wide;  // nodes; if there are any, the last result is the number of one whose
                                  // 64-bit integers left 32 bits, counted from 1, or 0
  std::vector<Output> outputs;    // of the model

  const Form& form(size_t input) const {
    const GraphInput& of = inputs[input];
    return of.is_weight ? weights.at(of.name) : arguments.at(of.name);
  }
};

// The manifest of a file whose tensors have the right hashes, forms and number. Throws a Package error that
// says what is wrong with the file, or why its model needs Python.
Manifest read_manifest(const File& file);

}  // namespace tt::runtime::package

// The results of a model by their names. A model's result is a tree of Python's containers; its tensors get
// the names of their places in the tree.
#pragma once

#include "package/json.h"
#include "package/manifest.h"

namespace tt::runtime::package {

// `results` is the number of the graph's results that the tree may have. Throws a Package error for a tree
// that is malformed or has an unknown part.
std::vector<Output> outputs_of(const Json& tree, const Manifest& manifest, size_t results);

}  // namespace tt::runtime::package

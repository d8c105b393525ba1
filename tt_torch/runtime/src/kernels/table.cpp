// All kernels, by the op of the wire format. An op that is in no table is not supported.
#include <map>

#include "kernels/kernels.h"

namespace tt::runtime {

static std::map<std::string_view, Kernel> joined() {
  using namespace kernels;
  std::map<std::string_view, Kernel> all;
  for (const Table& table :
       {attention_ops, cache_ops, choosing_ops, collective_ops, convolution_ops, convolution_prepare_ops,
        creation_ops, elementwise_ops, host_code_ops, indexing_ops, layout_ops, matmul_ops, movement_ops,
        normalization_ops, pooling_ops, reduction_ops, structure_ops, training_ops, unary_ops})
    for (const Row& row : table) all.emplace(row.op, row.build);
  return all;
}

Kernel find_kernel(std::string_view op) {
  static const auto kernels = joined();
  const auto found = kernels.find(op);
  return found == kernels.end() ? nullptr : found->second;
}

}  // namespace tt::runtime

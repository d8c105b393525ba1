// The arithmetic of a Tensix matrix unit, for devices that were opened as exact. Sources: the pages MVMUL,
// ELWADD and SrcASrcB of Tenstorrent's tt-isa-documentation, the functional simulator ttsim (how products are
// aligned and rounded), and the values that tests/runtime/test_exact_values.py has.
#pragma once

#include "kernels/kernels.h"

namespace tt::runtime::kernels::matrix_unit {

// How an op computes; a DeviceComputeKernelConfig of the wire format.
struct Accuracy {
  int phases = 4;           // passes over the bits of the operands: LoFi 1, HiFi2 2, HiFi3 3, HiFi4 4
  bool float32 = true;      // the registers that add up hold float32, otherwise bfloat16
  bool sums_in_l1 = false;  // sums of blocks are added in L1, not in the registers
};

// The accuracy in the op's compute config, or `of_library` if the op has no config.
Accuracy accuracy_of(OpBuilder& op, const Accuracy& of_library);

// The product of float32 matrices (..., M, K) and (..., K, N), as float32. The operands are cut to TF32. A
// bias is float32, and is added after the product. Its shape after broadcasting is (..., M, N).
at::Tensor product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias, const Accuracy& how);
// The sum of two tensors, as float32 with the values of the register's type. The operands are cut to TF32.
at::Tensor add(const at::Tensor& a, const at::Tensor& b, bool float32);
// The sum of float32 values over dimension `dim`, times `scale`. The size of this dimension becomes 1.
// `columns` means that `dim` is not the last dimension. Then the values are the right operand of a product
// with a row of `scale`.
at::Tensor scaled_sum(const at::Tensor& x, int64_t dim, bool columns, double scale, const Accuracy& how);

// The value in the type of a result. The packer rounds float32 to bfloat16 with ties away from zero.
at::Tensor packed(const at::Tensor& value, DataType dtype);

}  // namespace tt::runtime::kernels::matrix_unit

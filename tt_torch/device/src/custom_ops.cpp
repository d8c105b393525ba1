// torch.ops.tt: functions of the device for which PyTorch has no op. Some of them are not composed from
// PyTorch's ops; ops.py has their shapes and gradients.
#include <ATen/Functions.h>
#include <torch/library.h>

#include <span>

#include "tt/device/values.h"
#include "tt/runtime/block_float.h"
#include "tt/runtime/kernels.h"

namespace tt::device {

namespace {

using at::Tensor;
constexpr int64_t kTile = 32;

// Converts to the device's tile layout: (..., H, W) becomes (..., ceil(H / 32), ceil(W / 32), 32, 32), padded
// with zeros.
Tensor tilize(const Tensor& x) {
  TORCH_CHECK_VALUE(x.dim() >= 2, "tilize needs at least two dimensions, got ", x.dim());
  const auto padding = [&](int64_t dim) { return (kTile - x.sym_size(dim) % kTile) % kTile; };
  const Tensor padded = at::constant_pad_nd_symint(x, {0, padding(-1), 0, padding(-2)});
  c10::SymDimVector shape(x.sym_sizes().begin(), x.sym_sizes().end() - 2);
  for (const int64_t dim : {-2, -1}) {
    shape.push_back(padded.sym_size(dim) / kTile);
    shape.push_back(kTile);
  }
  return padded.reshape_symint(shape).transpose(-3, -2).clone(at::MemoryFormat::Contiguous);
}

// The inverse of tilize: (..., rows of tiles, columns of tiles, 32, 32) becomes (..., height, width).
Tensor untilize(const Tensor& tiles, c10::SymInt height, c10::SymInt width) {
  TORCH_CHECK_VALUE(tiles.dim() >= 4 && tiles.size(-1) == kTile && tiles.size(-2) == kTile,
                    "untilize needs at least four dimensions, the last two of them 32, got ", tiles.sizes());
  const Tensor rows = tiles.transpose(-3, -2);
  c10::SymDimVector shape(rows.sym_sizes().begin(), rows.sym_sizes().end() - 4);
  shape.push_back(rows.sym_size(-4) * kTile);
  shape.push_back(rows.sym_size(-2) * kTile);
  const Tensor padded = rows.reshape_symint(shape);
  TORCH_CHECK_VALUE(height <= padded.sym_size(-2) && width <= padded.sym_size(-1),
                    "the tiles have fewer than ", height, " rows or ", width, " columns");
  return padded.narrow_symint(-2, 0, height).narrow_symint(-1, 0, width).clone(at::MemoryFormat::Contiguous);
}

Tensor typecast(const Tensor& x, at::ScalarType dtype) { return at::_to_copy(x, x.options().dtype(dtype)); }

// Rounds to values that bfp8_b can represent: 16 consecutive values of a row share an exponent.
Tensor to_bfp8(const Tensor& x) {
  TORCH_CHECK_TYPE(at::isFloatingType(x.scalar_type()), "to_bfp8 needs floats, got ", x.scalar_type());
  Crossing crossing;
  Tensor values = crossing.enter(x).to(at::kFloat, /*non_blocking=*/false, /*copy=*/true).contiguous();
  if (values.numel() > 0) {
    const std::span<float> numbers(values.mutable_data_ptr<float>(), static_cast<size_t>(values.numel()));
    runtime::round_to_blocks(numbers, values.dim() ? values.size(-1) : 1, runtime::DataType::BfpBFloat8);
  }
  return crossing.leave(values.to(x.scalar_type()));
}

Tensor linear_activation(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
                         std::string_view activation) {
  Crossing crossing;
  const Tensor input = crossing.enter(x).contiguous(), matrix = crossing.enter(weight).contiguous();
  std::optional<Tensor> row;
  if (bias && bias->defined()) row = crossing.enter(*bias);
  return crossing.leave(runtime::kernels::linear(input, matrix, row, std::string(activation)));
}

TORCH_LIBRARY(tt, m) {
  m.def("tilize(Tensor x) -> Tensor", tilize);
  m.def("untilize(Tensor tiles, SymInt height, SymInt width) -> Tensor", untilize);
  m.def("typecast(Tensor x, ScalarType dtype) -> Tensor", typecast);
  m.def("to_bfp8(Tensor x) -> Tensor");
  m.def("linear_activation(Tensor x, Tensor weight, Tensor? bias=None, str activation=\"relu\") -> Tensor");
}

TORCH_LIBRARY_IMPL(tt, PrivateUse1, m) {
  m.impl("to_bfp8", to_bfp8);
  m.impl("linear_activation", linear_activation);
}

}  // namespace

}  // namespace tt::device

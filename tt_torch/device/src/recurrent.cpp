// The cells of LSTM and GRU. PyTorch calls each of them as one op on accelerators. The workspace has the
// values that the backward pass needs; PyTorch does not prescribe its form.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/library.h>

namespace tt::device {

namespace {

using at::Tensor;
using Bias = std::optional<Tensor>;

Tensor biased(const Tensor& gates, const Bias& bias) {
  return bias && bias->defined() ? gates + *bias : gates;
}

Tensor through_sigmoid(const Tensor& grad, const Tensor& value) { return at::sigmoid_backward(grad, value); }
Tensor through_tanh(const Tensor& grad, const Tensor& value) { return at::tanh_backward(grad, value); }
Tensor bias_gradient(const Tensor& gates, bool wanted) { return wanted ? gates.sum(0) : Tensor(); }

// Gates are (batch, 4 * hidden), in the order input, forget, cell, output.
std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates,
                                             const Tensor& cx, const Bias& input_bias,
                                             const Bias& hidden_bias) {
  const auto gates = (biased(input_gates, input_bias) + biased(hidden_gates, hidden_bias)).chunk(4, 1);
  const Tensor in = gates[0].sigmoid(), forget = gates[1].sigmoid(), cell = gates[2].tanh(),
               out = gates[3].sigmoid();
  const Tensor cy = forget * cx + in * cell;
  return {out * cy.tanh(), cy, at::cat({in, forget, cell, out}, 1)};
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(const Bias& grad_hy, const Bias& grad_cy,
                                                      const Tensor& cx, const Tensor& cy,
                                                      const Tensor& workspace, bool has_bias) {
  const auto given = [](const Bias& grad) { return grad && grad->defined(); };
  if (!given(grad_hy) && !given(grad_cy)) return {};
  const auto parts = workspace.chunk(4, 1);
  const Tensor &in = parts[0], &forget = parts[1], &cell = parts[2], &out = parts[3];
  const Tensor tanh_cy = cy.tanh();
  const Tensor hidden = given(grad_hy) ? *grad_hy : at::zeros_like(cy);
  Tensor inner = through_tanh(hidden * out, tanh_cy);
  if (given(grad_cy)) inner = inner + *grad_cy;
  const Tensor gates = at::cat({through_sigmoid(inner * cell, in), through_sigmoid(inner * cx, forget),
                                through_tanh(inner * in, cell), through_sigmoid(hidden * tanh_cy, out)},
                               1);
  return {gates, inner * forget, bias_gradient(gates, has_bias)};
}

// Gates are (batch, 3 * hidden), in the order reset, update, new.
std::tuple<Tensor, Tensor> gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                                    const Bias& input_bias, const Bias& hidden_bias) {
  const auto input = biased(input_gates, input_bias).chunk(3, 1);
  const auto hidden = biased(hidden_gates, hidden_bias).chunk(3, 1);
  const Tensor reset = (input[0] + hidden[0]).sigmoid(), update = (input[1] + hidden[1]).sigmoid();
  const Tensor fresh = (input[2] + reset * hidden[2]).tanh();
  return {(hx - fresh) * update + fresh, at::cat({reset, update, fresh, hidden[2], hx}, 1)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& grad_hy,
                                                                     const Tensor& workspace, bool has_bias) {
  const auto parts = workspace.chunk(5, 1);
  const Tensor &reset = parts[0], &update = parts[1], &fresh = parts[2], &hidden = parts[3], &hx = parts[4];
  const Tensor d_fresh = through_tanh(grad_hy * (1 - update), fresh);
  const Tensor d_update = through_sigmoid(grad_hy * (hx - fresh), update);
  const Tensor d_reset = through_sigmoid(d_fresh * hidden, reset);
  const Tensor input = at::cat({d_reset, d_update, d_fresh}, 1);
  const Tensor recurrent = at::cat({d_reset, d_update, d_fresh * reset}, 1);
  return {input, recurrent, grad_hy * update, bias_gradient(input, has_bias),
          bias_gradient(recurrent, has_bias)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_thnn_fused_lstm_cell", lstm_cell);
  m.impl("_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward);
  m.impl("_thnn_fused_gru_cell", gru_cell);
  m.impl("_thnn_fused_gru_cell_backward", gru_cell_backward);
}

}  // namespace

}  // namespace tt::device

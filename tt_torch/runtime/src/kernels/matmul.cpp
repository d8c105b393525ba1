// Matrix products. A constant second operand is packed once for oneDNN, and its plain form is dropped.
#include <ATen/ExpandUtils.h>

#include "kernels/kernels.h"
#include "kernels/matrix_unit.h"
#include "kernels/one_row.h"
#include "kernels/onednn.h"
#include "tt/runtime/kernels.h"

namespace tt::runtime::kernels {

namespace {

using Tensor = at::Tensor;

struct Product {
  Slot a, b, out;
  std::optional<Slot> bias, added;  // `added` has the result's shape: a bias, or operand of an absorbed add
  bool transpose_a = false, transpose_b = false;
  Activation activation;
  at::ScalarType type = at::kFloat;  // the type in which the product is computed
  std::vector<int64_t> shape;
};

// The weight as (N, K), the form that oneDNN packs.
Tensor rows_of(const Tensor& b, bool transpose_b) {
  const Tensor matrix = b.reshape({b.size(-2), b.size(-1)});
  return transpose_b ? matrix : matrix.t();
}

Packing packing_of(const Product& p, const std::vector<int64_t>& shape) {
  return {"linear" + std::to_string(p.transpose_b) + toString(p.type),
          [t = p.transpose_b, type = p.type](const Tensor& b) {
            return onednn::pack_linear(rows_of(b.to(type), t));
          },
          [t = p.transpose_b, shape](const Tensor& packed) {
            const Tensor rows = packed.to_dense();
            return (t ? rows : rows.t()).reshape(shape).contiguous();
          }};
}

std::optional<Tensor> flat_bias(const Product& p, Frame& f) {
  if (!p.bias) return std::nullopt;
  return f[*p.bias].reshape({-1}).to(p.type);
}

Tensor activated(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
                 const Activation& activation) {
  if (!activation.apply || !activation.fused.empty()) return onednn::linear(x, weight, bias, activation);
  return activation.apply(onednn::linear(x, weight, bias, {}));
}

// As oneDNN does, this rounds after the activations that oneDNN has, and before the others.
Tensor one_row_product(const Product& p, const Tensor& x, Frame& f) {
  Tensor sum = one_row::product(x, f[p.b]);
  if (const auto bias = flat_bias(p, f)) sum.add_(*bias);
  if (!p.activation.apply) return sum.to(p.type);
  return p.activation.fused.empty() ? p.activation.apply(sum.to(p.type)) : p.activation.apply(sum).to(p.type);
}

Tensor packed_product(const Product& p, Frame& f) {
  const Tensor x = f[p.a].to(p.type);
  if (!p.added && one_row::takes(x, f[p.b])) return one_row_product(p, x, f);
  if (p.added) {
    const Tensor sum = onednn::linear_add(x, f[*p.added].view(p.shape), f[p.b], flat_bias(p, f));
    return p.activation.apply ? p.activation.apply(sum) : sum;
  }
  return activated(x, f[p.b], flat_bias(p, f), p.activation);
}

Tensor plain_product(const Product& p, Frame& f) {
  Tensor a = f[p.a].to(p.type), b = f[p.b].is_mkldnn() ? f[p.b].to_dense() : f[p.b].to(p.type);
  if (p.transpose_a && a.dim() > 1) a = a.transpose(-1, -2);
  if (p.transpose_b && b.dim() > 1) b = b.transpose(-1, -2);
  Tensor result;
  const bool row_bias = p.bias && f[*p.bias].numel() == b.size(-1) && b.numel() == b.size(-1) * b.size(-2);
  if (row_bias && a.dim() > 1)
    result = at::linear(a, rows_of(b, false), flat_bias(p, f));
  else
    result = at::matmul(a, b);
  if (p.bias && !(row_bias && a.dim() > 1)) result = result + f[*p.bias];
  if (p.added) result = result + f[*p.added];
  return p.activation.apply ? p.activation.apply(result) : result;
}

// The product as the matrix unit rounds it. The activation is applied to the rounded result. The library also
// adds a bias of the result's shape after the rounding.
Tensor exact_product(const Product& p, const matrix_unit::Accuracy& how, DataType result, Frame& f) {
  Tensor a = f[p.a].to(at::kFloat), b = f[p.b].to(at::kFloat);
  if (p.transpose_a) a = a.transpose(-1, -2);
  if (p.transpose_b) b = b.transpose(-1, -2);
  const Tensor bias = p.bias ? f[*p.bias].to(at::kFloat) : Tensor();
  Tensor value = matrix_unit::packed(matrix_unit::product(a, b, bias, how), result).reshape(p.shape);
  if (p.added && storage_type(result) == at::kBFloat16)
    value = matrix_unit::add(value, f[*p.added], false);
  else if (p.added)
    value = value + f[*p.added];
  return p.activation.apply ? p.activation.apply(value) : value;
}

// Whether the device is exact and its matrix unit computes the product. It computes products of float
// matrices.
bool is_exact(OpBuilder& op, const Product& p) {
  const auto &a = op.spec(p.a), &b = op.spec(p.b);
  return op.exact() && a.shape.size() > 1 && b.shape.size() > 1 && is_float(a.dtype) && is_float(b.dtype) &&
         is_float(op.spec(p.out).dtype);
}

// The library's defaults for float32 are four passes and float32 registers. For other types, they are two
// passes and bfloat16 registers.
void compute_exactly(OpBuilder& op, const Product& p) {
  const DataType result = op.spec(p.out).dtype;
  const bool wide = op.spec(p.a).dtype == DataType::Float32;
  const auto how = matrix_unit::accuracy_of(op, {wide ? 4 : 2, wide, true});
  op.compute(p.out, [=](Frame& f) { return exact_product(p, how, result, f); });
}

// Whether the bias varies only along the last dimension, so that oneDNN can add it in the product.
bool is_row_bias(OpBuilder& op, const Product& p) {
  const auto& bias = op.spec(*p.bias).shape;
  return !p.shape.empty() && !bias.empty() && bias.back() == p.shape.back() &&
         checked_volume(bias) == bias.back();
}

bool is_like_result(OpBuilder& op, const Product& p) {
  const auto& bias = op.spec(*p.bias);
  return bias.shape == p.shape && bias.dtype == op.spec(p.out).dtype;
}

bool packs(OpBuilder& op, const Product& p) {
  const auto &a = op.spec(p.a).shape, &b = op.spec(p.b).shape;
  const DataType result = op.spec(p.out).dtype;
  if (a.size() < 2 || b.size() < 2 || p.transpose_a || checked_volume(b) != b.back() * b[b.size() - 2])
    return false;
  if (b.size() > a.size() || checked_volume(b) == 0 || checked_volume(a) == 0) return false;
  return is_float(op.spec(p.b).dtype) && storage_type(result) == p.type && (!p.bias || is_row_bias(op, p));
}

// Checks the shapes before anything runs, so that a damaged binary does not make a huge product.
void check_shapes(OpBuilder& op, const Product& p) {
  std::vector<int64_t> a = op.spec(p.a).shape, b = op.spec(p.b).shape;
  if (a.size() < 2 || b.size() < 2) return;
  if (p.transpose_a) std::swap(a[a.size() - 1], a[a.size() - 2]);
  if (p.transpose_b) std::swap(b[b.size() - 1], b[b.size() - 2]);
  op.require(a.back() == b[b.size() - 2], "the inner dimensions of the operands differ");
  std::vector<int64_t> shape =
      at::infer_size(at::IntArrayRef(a).slice(0, a.size() - 2), at::IntArrayRef(b).slice(0, b.size() - 2));
  shape.insert(shape.end(), {a[a.size() - 2], b.back()});
  op.require(checked_volume(shape) == checked_volume(p.shape),
             "the result has another number of elements than the product");
  op.require(shape.back() == (p.shape.empty() ? 1 : p.shape.back()),
             "the result has another width than the product");
}

void absorb_tail(OpBuilder& op, Product& p) {
  if (p.activation.apply || p.added) return;
  const auto tail = op.absorb(p.out, true);
  if (!tail) return;
  if (tail->other >= 0)
    p.added = tail->other;
  else
    p.activation = activation_named(tail->activation);
}

// The activation of a product: the op names it, or its program configuration does. The library refuses both.
Activation activation_in(OpBuilder& op) {
  const std::string named(op.attributes().text("activation"));
  const auto config = op.attributes().member("matmul_program_config");
  const auto fused = config ? config->record("fused_activation") : std::nullopt;
  op.require(!fused || named.empty(), "both the op and its program configuration have an activation");
  return fused ? activation_of(*fused) : activation_named(named);
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
              const std::string& activation) {
  return activated(x, weight, bias, activation_named(activation));
}

static void matmul(OpBuilder& op) {
  Product p{op.in("a"),
            op.in("b"),
            -1,
            op.maybe("bias"),
            std::nullopt,
            op.attributes().flag("transpose_a"),
            op.attributes().flag("transpose_b"),
            activation_in(op),
            at::kFloat,
            {}};
  p.out = op.out();
  p.shape = op.spec(p.out).shape;
  p.type = storage_type(op.spec(p.a).dtype);
  if (storage_type(op.spec(p.b).dtype) != p.type || !onednn::supports(p.type)) p.type = at::kFloat;
  check_shapes(op, p);
  if (p.bias)
    op.require(at::infer_size(p.shape, op.spec(*p.bias).shape) == p.shape,
               "the bias cannot be broadcast to the result");
  if (p.bias && !is_row_bias(op, p) && is_like_result(op, p)) p.added.swap(p.bias);
  if (is_exact(op, p)) return compute_exactly(op, p);
  if (!packs(op, p)) return op.compute(p.out, [p](Frame& f) { return plain_product(p, f); });
  op.prefer(p.b, packing_of(p, op.spec(p.b).shape));
  absorb_tail(op, p);
  op.compute(p.out, [p](Frame& f) {
    return f[p.b].is_mkldnn() ? packed_product(p, f).view(p.shape) : plain_product(p, f);
  });
}

// The products of blocks whose entry in `sparsity` is not zero; the other blocks of the result are zero.
// There are E blocks of `b`. Each is multiplied by a block of its own of `a`, or by each block of `a`.
static void sparse_matmul(OpBuilder& op) {
  const Slot a = op.in("a"), b = op.in("b"), mask = op.in("sparsity"), out = op.out();
  const bool a_has_experts = op.attributes().flag("is_input_a_sparse");
  const bool is_sparse = a_has_experts || op.attributes().flag("is_input_b_sparse");
  op.require(is_sparse, "one of the operands must be sparse");
  const auto &left = op.spec(a).shape, &right = op.spec(b).shape;
  op.require(left.size() == 4 && right.size() == 4 && right[0] == 1 && left[3] == right[2],
             "the operands must be A x B x M x K and 1 x E x K x N");
  const int64_t experts = right[1], groups = a_has_experts ? left[0] : checked_volume({left[0], left[1]});
  op.require(!a_has_experts || left[1] == experts, "a sparse a must have the blocks of b");
  op.require(checked_volume(op.spec(mask).shape) == checked_volume({groups, experts}),
             "the sparsity must have one entry per product");
  const std::vector<int64_t> shape{groups, experts, left[2], right[3]};
  op.require(checked_volume(shape) == checked_volume(op.spec(out).shape),
             "the result has another number of elements than the products");
  const auto count = op.attributes().maybe_integer("nnz");
  const bool wide = op.spec(a).dtype == DataType::Float32;
  const auto how = matrix_unit::accuracy_of(op, {wide ? 4 : 2, wide, true});
  op.compute(out, [=, exact = op.exact(), made = op.spec(out)](Frame& f) {
    const Tensor wanted = f[mask].reshape({-1}).ne(0).nonzero().reshape({-1}).contiguous();
    TORCH_CHECK_VALUE(!count || *count == wanted.numel(), "nnz is ", *count, ", but the sparsity has ",
                      wanted.numel(), " entries that are not zero");
    const Tensor rows = f[a].flatten(0, 1).to(at::kFloat), weights = f[b].squeeze(0);
    Tensor result = at::zeros({groups * experts, shape[2], shape[3]});
    for (int64_t i = 0; i < wanted.numel(); ++i) {
      const int64_t at = wanted.data_ptr<int64_t>()[i];
      const Tensor x = rows[a_has_experts ? at : at / experts], y = weights[at % experts].to(at::kFloat);
      result[at].copy_(exact ? matrix_unit::packed(matrix_unit::product(x, y, {}, how), made.dtype)
                             : at::matmul(x, y));
    }
    return result.reshape(made.shape);
  });
}

static constexpr Row matmul_rows[] = {
    {"LinearOp", matmul},
    {"MatmulOp", matmul},
    {"SparseMatmulOp", sparse_matmul},
};
constinit const Table matmul_ops = matmul_rows;

}  // namespace tt::runtime::kernels

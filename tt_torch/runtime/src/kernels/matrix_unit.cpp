#include "kernels/matrix_unit.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Parallel.h>

#include <array>
#include <bit>
#include <cmath>

namespace tt::runtime::kernels::matrix_unit {

namespace {

using Tensor = at::Tensor;

constexpr int64_t kGroup = 8;   // products that are aligned to one exponent
constexpr int64_t kDepth = 16;  // products of one instruction
constexpr int kExponentBias = 127, kSignificandBits = 24, kTf32Drop = 13;

// A TF32 number. The significand has a sign and 11 bits, including the leading one. Denormals are zeros.
struct Number {
  int exponent = 0, significand = 0;
};

Number number_of(float value) {
  const auto word = std::bit_cast<uint32_t>(value);
  const int exponent = static_cast<int>(word >> 23 & 0xff);
  const int magnitude = static_cast<int>(0x400 | (word >> kTf32Drop & 0x3ff));
  return exponent == 0 ? Number{} : Number{exponent, word >> 31 ? -magnitude : magnitude};
}

// A sum of products before it is added to a register: magnitude / 2^23 * 2^(exponent - 127).
struct Term {
  int exponent = 0;
  int64_t magnitude = 0;
  bool negative = false;
};

int64_t shifted(int64_t magnitude, int distance, int64_t less) {
  if (distance <= 0) return magnitude;
  return distance > 30 ? 0 : (magnitude + (int64_t{1} << (distance - 1)) - less) >> distance;
}

// Rounds a magnitude to its `bits` leading bits, with ties away from zero.
int64_t leading(int64_t magnitude, int bits) {
  const int drop = std::bit_width(static_cast<uint64_t>(magnitude)) - bits;
  return drop <= 0 ? magnitude : shifted(magnitude, drop, 0) << drop;
}

// The register's new value. All terms are aligned to the largest exponent. This rounds ties of a negative sum
// of products toward zero. For a bfloat16 register, the terms then lose the bits that TF32 does not have.
float accumulate(float dst, const std::array<Term, 2>& sums, bool float32) {
  const auto word = std::bit_cast<uint32_t>(dst);
  const int own = static_cast<int>(word >> 23 & 0xff);
  const Term held{own, own ? int64_t{word & 0x7fffff} | 0x800000 : 0, (word >> 31) != 0};
  const int exponent = std::max({own, sums[0].exponent, sums[1].exponent});
  if (exponent <= 0) return 0;
  int64_t total = 0;
  const auto take = [&](const Term& term, int64_t less) {
    int64_t magnitude = shifted(term.magnitude, exponent - term.exponent, less);
    if (!float32) magnitude = (magnitude + (1 << (kTf32Drop - 1)) - less) & ~((int64_t{1} << kTf32Drop) - 1);
    total += term.negative ? -magnitude : magnitude;
  };
  take(held, 0);
  for (const Term& sum : sums) take(sum, sum.negative);
  const int64_t rounded = leading(std::abs(total), float32 ? kSignificandBits : 8);
  const double value = std::ldexp(static_cast<double>(rounded), exponent - kExponentBias - 23);
  if (value < 0x1p-126) return 0;
  return static_cast<float>(total < 0 ? -value : value);
}

// The bits of an operand that a phase uses. Odd phases use the lower bits of the right operand, and the last
// two phases use the lower bits of the left operand.
int left_bits(int significand, int phase) {
  const int magnitude = std::abs(significand), part = phase & 2 ? (magnitude & 15) << 3 : magnitude >> 4;
  return significand < 0 ? -part : part;
}
int right_bits(int significand, int phase) {
  const int magnitude = std::abs(significand), part = phase & 1 ? magnitude >> 1 & 31 : magnitude >> 6;
  return significand < 0 ? -part : part;
}

// The sum of eight products, each rounded to the unit of the product with the largest exponent.
Term dot(const Number* left, const Number* right, int phase) {
  const int bias = -kExponentBias - (phase & 1 ? 5 : 0) - (phase & 2 ? 7 : 0);
  std::array<int, kGroup> exponents{};
  int largest = 0;
  for (int64_t i = 0; i < kGroup; ++i) {
    const bool zero = left[i].significand == 0 || right[i].significand == 0;
    exponents[i] = zero ? 0 : left[i].exponent + right[i].exponent + bias;
    largest = std::max(largest, exponents[i]);
  }
  if (largest == 0) return {};
  int64_t sum = 0;
  for (int64_t i = 0; i < kGroup; ++i) {
    const int part = left_bits(left[i].significand, phase) * right_bits(right[i].significand, phase);
    const int64_t magnitude = shifted(std::abs(part), largest - exponents[i], 0);
    sum += part < 0 ? -magnitude : magnitude;
  }
  return {largest, std::abs(sum) << kTf32Drop, sum < 0};
}

// An element of a product: `left` and `right` have `depth` numbers, a multiple of a tile's side.
float element(const Number* left, const Number* right, int64_t depth, float dst, const Accuracy& how) {
  for (int64_t tile = 0; tile < depth; tile += kTile)
    for (int phase = 0; phase < how.phases; ++phase)
      for (int64_t k = tile; k < tile + kTile; k += kDepth)
        dst = accumulate(dst,
                         {dot(left + k, right + k, phase), dot(left + k + kGroup, right + k + kGroup, phase)},
                         how.float32);
  return dst;
}

float added_in_l1(float held, float block, bool float32) {
  return float32 ? held + block : static_cast<float>(c10::BFloat16(held + block));
}

// An element of a product, in blocks of `block` numbers. The sums of the blocks are added in L1. The last
// block begins with this sum in the register, unless an op that is fused to the product needs the sum in L1.
float in_blocks(const Number* left, const Number* right, int64_t depth, int64_t block, bool reload,
                const Accuracy& how) {
  float held = 0;
  for (int64_t k = 0; k < depth; k += block) {
    const int64_t count = std::min(block, depth - k);
    const bool into_register = k == 0 || (reload && k + count == depth);
    const float sum = element(left + k, right + k, count, into_register ? held : 0, how);
    held = into_register ? sum : added_in_l1(held, sum, how.float32);
  }
  return held;
}

int64_t tiles(int64_t size) { return (size + kTile - 1) / kTile; }

// The numbers of the rows of a float32 matrix, filled with zeros to whole tiles.
std::vector<Number> numbers_of(const Tensor& matrix) {
  const int64_t rows = matrix.size(0), width = matrix.size(1), depth = tiles(width) * kTile;
  const Tensor plain = matrix.contiguous();
  const auto* values = static_cast<const float*>(plain.const_data_ptr());
  std::vector<Number> numbers(static_cast<size_t>(rows * depth));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < width; ++k) numbers[i * depth + k] = number_of(values[i * width + k]);
  return numbers;
}

// The library reads two tiles at once if there is one row or one column of tiles of results, and their number
// is even. Otherwise it reads one.
int64_t block_of(int64_t m, int64_t k, int64_t n) {
  const bool line = tiles(m) == 1 || tiles(n) == 1;
  return kTile * (line && tiles(k) % 2 == 0 ? 2 : 1);
}

Tensor matrix_product(const Tensor& a, const Tensor& b, bool reload, const Accuracy& how) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1), depth = tiles(k) * kTile;
  const std::vector<Number> left = numbers_of(a), right = numbers_of(b.t());
  const int64_t block = how.sums_in_l1 ? block_of(m, k, n) : depth;
  Tensor out = at::empty({m, n}, at::kFloat);
  auto* values = static_cast<float*>(out.mutable_data_ptr());
  at::parallel_for(0, m * n, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      values[i] =
          in_blocks(left.data() + i / n * depth, right.data() + i % n * depth, depth, block, reload, how);
  });
  return out;
}

// One of the matrices of a tensor, which are counted in the order of its first dimensions.
Tensor matrix_of(Tensor x, int64_t index) {
  for (int64_t dim = x.dim() - 3; dim >= 0; --dim) {
    const int64_t size = x.size(dim);
    x = x.select(dim, index % size);
    index /= size;
  }
  return x;
}

// The larger operand gives the exponent. The other operand is rounded to the unit of this exponent.
float sum_of(float a, float b, bool float32) {
  Number large = number_of(a), small = number_of(b);
  const auto order = [](const Number& x) { return std::pair(x.exponent, std::abs(x.significand)); };
  if (order(large) < order(small)) std::swap(large, small);
  const int64_t other = shifted(std::abs(small.significand), large.exponent - small.exponent, 0);
  const bool same = (large.significand < 0) == (small.significand < 0);
  const int64_t magnitude = std::abs(large.significand) + (same ? other : -other);
  return accumulate(0, {Term{large.exponent, magnitude << kTf32Drop, large.significand < 0}, Term{}},
                    float32);
}

constexpr wire::Named<int> phases_of[] = {{"LoFi", 1}, {"HiFi2", 2}, {"HiFi3", 3}, {"HiFi4", 4}};

}  // namespace

Accuracy accuracy_of(OpBuilder& op, const Accuracy& of_library) {
  const auto config = op.attributes().record("compute_config");
  if (!config) return of_library;
  // The library's structure begins with LoFi.
  const int phases = config->has("math_fidelity") ? config->choose("math_fidelity", phases_of) : 1;
  return {phases, config->flag("fp32_dest_acc_en"), config->flag("packer_l1_acc")};
}

Tensor product(const Tensor& a, const Tensor& b, const Tensor& bias, const Accuracy& how) {
  const std::vector<int64_t> outer =
      at::infer_size(a.sizes().slice(0, a.dim() - 2), b.sizes().slice(0, b.dim() - 2));
  std::vector<int64_t> shape = outer, left = outer, right = outer;
  shape.insert(shape.end(), {a.size(-2), b.size(-1)});
  left.insert(left.end(), {a.size(-2), a.size(-1)});
  right.insert(right.end(), {b.size(-2), b.size(-1)});
  const Tensor as = a.expand(left), bs = b.expand(right), out = at::empty(shape, at::kFloat);
  for (int64_t i = 0; i < c10::multiply_integers(outer); ++i)
    matrix_of(out, i).copy_(matrix_product(matrix_of(as, i), matrix_of(bs, i), !bias.defined(), how));
  return bias.defined() ? add(out, bias, how.float32) : out;
}

Tensor add(const Tensor& a, const Tensor& b, bool float32) {
  const auto shape = at::infer_size(a.sizes(), b.sizes());
  const Tensor x = a.to(at::kFloat).expand(shape).contiguous(),
               y = b.to(at::kFloat).expand(shape).contiguous();
  Tensor out = at::empty(shape, at::kFloat);
  const auto *left = static_cast<const float*>(x.const_data_ptr()),
             *right = static_cast<const float*>(y.const_data_ptr());
  auto* values = static_cast<float*>(out.mutable_data_ptr());
  for (int64_t i = 0; i < out.numel(); ++i) values[i] = sum_of(left[i], right[i], float32);
  return out;
}

Tensor scaled_sum(const Tensor& x, int64_t dim, bool columns, double scale, const Accuracy& how) {
  const Tensor rows = x.to(at::kFloat).transpose(dim, -1).contiguous();
  const Tensor matrix = rows.reshape({-1, x.size(dim)});
  // The library cuts the scale to bfloat16.
  const auto cut = std::bit_cast<uint32_t>(static_cast<float>(scale)) & 0xffff0000u;
  const Tensor scales = at::full({x.size(dim), 1}, std::bit_cast<float>(cut), at::kFloat);
  const Tensor sums = columns ? matrix_product(scales.t(), matrix.t(), true, how).t()
                              : matrix_product(matrix, scales, true, how);
  std::vector<int64_t> shape = rows.sizes().vec();
  shape.back() = 1;
  return sums.reshape(shape).transpose(dim, -1);
}

Tensor packed(const Tensor& value, DataType dtype) {
  if (storage_type(dtype) != at::kBFloat16) return value;
  const Tensor bits = value.contiguous().view(at::kInt);
  // Infinities keep their bits. The carry of a finite value may reach an infinity, but not more.
  return bits.add(0x8000).bitwise_and(static_cast<int64_t>(-0x10000)).view(at::kFloat).to(at::kBFloat16);
}

}  // namespace tt::runtime::kernels::matrix_unit

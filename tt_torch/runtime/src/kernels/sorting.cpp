#include "kernels/sorting.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sort.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace tt::runtime::kernels {

namespace {

constexpr int64_t kShort = 512;  // elements of a row for which comparing them is as fast
constexpr int kDigit = 11, kDigits = 3;
constexpr uint32_t kMask = (1u << kDigit) - 1, kSign = 1u << 31;

struct Entry {
  uint32_t key, position;
};

// Unsigned numbers in the order of the elements. Zeros of both signs are equal, and NaN is the largest
// element.
uint32_t key(float x) {
  if (std::isnan(x)) return std::numeric_limits<uint32_t>::max();
  const uint32_t bits = x == 0 ? 0 : std::bit_cast<uint32_t>(x);
  return bits & kSign ? ~bits : bits | kSign;
}

uint32_t key(int32_t x) { return static_cast<uint32_t>(x) ^ kSign; }

// Sorts by the lowest digit first. Each pass keeps the order of entries with equal digits.
void sort_entries(std::vector<Entry>& entries, std::vector<Entry>& other) {
  std::array<std::array<uint32_t, kMask + 1>, kDigits> begins{};
  for (const Entry& entry : entries)
    for (int d = 0; d < kDigits; ++d) ++begins[d][entry.key >> (d * kDigit) & kMask];
  for (int d = 0; d < kDigits; ++d) {
    uint32_t total = 0;
    for (uint32_t& begin : begins[d]) total += std::exchange(begin, total);
    for (const Entry& entry : entries) other[begins[d][entry.key >> (d * kDigit) & kMask]++] = entry;
    entries.swap(other);
  }
}

template <typename T>
void sort_rows(const at::Tensor& x, const at::Tensor& values, const at::Tensor& positions, bool descending) {
  const int64_t size = x.size(-1), rows = x.numel() / size;
  const T* const from = x.const_data_ptr<T>();
  T* const into = values.mutable_data_ptr<T>();
  int64_t* const places = positions.mutable_data_ptr<int64_t>();
  at::parallel_for(0, rows, 1, [&](int64_t first, int64_t end) {
    std::vector<Entry> entries(size), other(size);
    for (int64_t row = first; row < end; ++row) {
      const T* const given = from + row * size;
      for (int64_t i = 0; i < size; ++i) {
        const uint32_t ascending = key(given[i]);
        entries[i] = {descending ? ~ascending : ascending, static_cast<uint32_t>(i)};
      }
      sort_entries(entries, other);
      for (int64_t i = 0; i < size; ++i) {
        into[row * size + i] = given[entries[i].position];
        places[row * size + i] = entries[i].position;
      }
    }
  });
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> stable_sort(const at::Tensor& x, int64_t dim, bool descending) {
  const auto type = x.scalar_type();
  const bool known = type == at::kFloat || type == at::kBFloat16 || type == at::kInt;
  const int64_t size = x.dim() ? x.size(dim) : 1;
  if (!known || size < kShort || size > std::numeric_limits<uint32_t>::max() || !x.numel())
    return at::sort(x, true, dim, descending);
  const at::Tensor rows = x.movedim(dim, -1).to(type == at::kInt ? at::kInt : at::kFloat).contiguous();
  const at::Tensor values = at::empty(rows.sizes(), rows.options());
  const at::Tensor positions = at::empty(rows.sizes(), rows.options().dtype(at::kLong));
  if (type == at::kInt)
    sort_rows<int32_t>(rows, values, positions, descending);
  else
    sort_rows<float>(rows, values, positions, descending);
  return {values.to(type).movedim(-1, dim), positions.movedim(-1, dim)};
}

}  // namespace tt::runtime::kernels

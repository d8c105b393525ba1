// Rounds a row of float or bf16 values to the values that block floats can represent.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "tt/runtime/types.h"

namespace tt::runtime {

constexpr int64_t kBlock = 16;  // values that share an exponent

inline int mantissa_bits(DataType dtype) { return dtype == DataType::BfpBFloat8 ? 7 : 3; }

template <typename T>
bool is_negative(T value) {
  return std::bit_cast<uint32_t>(static_cast<float>(value)) >> 31;  // correct for NaN as well
}

// The magnitude of a value relative to a shared exponent, as an integer of `bits` bits whose hidden bit is
// explicit. The significand is shifted down to the shared exponent and then rounded half to even. Bits that
// the shift drops have no influence on the rounding, as in tt-metal's packer.
inline uint32_t block_magnitude(float value, int shared, int bits) {
  const auto word = std::bit_cast<uint32_t>(value);
  const int exponent = static_cast<int>((word >> 23) & 0xff);
  if (exponent == 0) return 0;  // zeros and denormals
  const int distance = shared - exponent;
  if (distance > 24) return 0;
  const uint32_t significand = ((word & 0x7fffff) | 0x800000) >> distance;
  const int drop = 24 - bits;
  const uint32_t rest = significand & ((1u << drop) - 1), half = 1u << (drop - 1);
  uint32_t magnitude = significand >> drop;
  if (rest > half || (rest == half && (magnitude & 1))) ++magnitude;
  return std::min(magnitude, (1u << bits) - 1);
}

template <typename T>
int shared_exponent(const T* block, int64_t count) {
  int shared = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto word = std::bit_cast<uint32_t>(static_cast<float>(block[i]));
    shared = std::max(shared, static_cast<int>((word >> 23) & 0xff));
  }
  return shared;
}

// The value of a magnitude. Blocks with an infinity or a NaN have the shared exponent 255. In such a block, a
// magnitude with only the top bit is an infinity. A magnitude with the top bit and further bits is a NaN with
// these bits. A smaller magnitude is a finite number.
inline float block_value(uint32_t magnitude, bool negative, int shared, int bits) {
  if (magnitude == 0) return 0.0f;
  const uint32_t top = 1u << (bits - 1);
  if (shared == 255 && magnitude >= top) {
    const uint32_t sign = negative ? 0x80000000u : 0;
    return std::bit_cast<float>(sign | 0x7f800000u | (magnitude - top) << (24 - bits));
  }
  const int scale = shared - 127 - (bits - 1);
  const float unit = scale >= -126 ? std::bit_cast<float>(static_cast<uint32_t>(scale + 127) << 23)
                                   : std::bit_cast<float>(1u << std::max(0, 149 + scale));
  return (negative ? -1.0f : 1.0f) * static_cast<float>(magnitude) * unit;
}

template <typename T>
void round_row(T* row, int64_t columns, int bits) {
  for (int64_t start = 0; start < columns; start += kBlock) {
    const int64_t count = std::min(kBlock, columns - start);
    const int shared = shared_exponent(row + start, count);
    for (int64_t i = start; i < start + count; ++i) {
      const auto value = static_cast<float>(row[i]);
      row[i] =
          static_cast<T>(block_value(block_magnitude(value, shared, bits), is_negative(value), shared, bits));
    }
  }
}

}  // namespace tt::runtime

#include "tt/runtime/block_float.h"

#include "block_round.h"
#include "memory.h"
#include "tt/runtime/error.h"

namespace tt::runtime {

namespace {

constexpr int64_t kFaceRows = 64;  // 4 faces of 16 rows

int checked_bits(DataType dtype) {
  if (dtype != DataType::BfpBFloat8 && dtype != DataType::BfpBFloat4)
    throw Error(ErrorKind::InputDtype, std::string(name(dtype)) + " is not a block-float type");
  return mantissa_bits(dtype);
}

// The start of row `index` (0..63) of the faces in a row-major tile. Faces go from left to right, then down.
// Example: row 16 is the first row of the second face and starts at element 16.
int64_t face_row(int64_t index) {
  const int64_t face = index / 16, row = index % 16;
  return (row + 16 * (face / 2)) * kTile + 16 * (face % 2);
}

}  // namespace

std::vector<uint8_t> pack_tile(std::span<const float> tile, DataType dtype) {
  const int bits = checked_bits(dtype);
  if (tile.size() != 1024)
    throw Error(ErrorKind::InputShape, "a tile has 1024 values, got " + std::to_string(tile.size()));
  std::vector<uint8_t> bytes(kFaceRows + 128 * (bits + 1));
  for (int64_t row = 0; row < kFaceRows; ++row) {
    const float* block = tile.data() + face_row(row);
    const int shared = shared_exponent(block, kBlock);
    bytes[row] = static_cast<uint8_t>(shared);
    for (int64_t i = 0; i < kBlock; ++i) {
      const uint32_t magnitude = block_magnitude(block[i], shared, bits);
      const uint32_t sign = magnitude && is_negative(block[i]) ? 1u << bits : 0;
      const int64_t element = row * kBlock + i;
      if (bits == 7)
        bytes[kFaceRows + element] = static_cast<uint8_t>(sign | magnitude);
      else
        bytes[kFaceRows + element / 2] |= static_cast<uint8_t>((sign | magnitude) << (4 * (element % 2)));
    }
  }
  return bytes;
}

std::vector<float> unpack_tile(std::span<const uint8_t> bytes, DataType dtype) {
  const int bits = checked_bits(dtype);
  if (bytes.size() != static_cast<size_t>(kFaceRows + 128 * (bits + 1)))
    throw Error(ErrorKind::InputShape, "a tile of " + std::string(name(dtype)) + " has " +
                                           std::to_string(kFaceRows + 128 * (bits + 1)) + " bytes, got " +
                                           std::to_string(bytes.size()));
  std::vector<float> tile(1024);
  for (int64_t row = 0; row < kFaceRows; ++row) {
    for (int64_t i = 0; i < kBlock; ++i) {
      const int64_t element = row * kBlock + i;
      const uint32_t code = bits == 7 ? bytes[kFaceRows + element]
                                      : (bytes[kFaceRows + element / 2] >> (4 * (element % 2))) & 15u;
      const uint32_t magnitude = code & ((1u << bits) - 1);
      tile[face_row(row) + i] = block_value(magnitude, code >> bits, bytes[row], bits);
    }
  }
  return tile;
}

void round_to_blocks(std::span<float> values, int64_t columns, DataType dtype) {
  const int bits = checked_bits(dtype);
  if (columns <= 0 || values.size() % columns != 0)
    throw Error(
        ErrorKind::InputShape,
        std::to_string(values.size()) + " values cannot be divided into rows of " + std::to_string(columns));
  for (size_t start = 0; start < values.size(); start += columns)
    round_row(values.data() + start, columns, bits);
}

}  // namespace tt::runtime

// Block floating point: 16 consecutive values in a row of a 16x16 face share one exponent. A 32x32 tile is
// stored as 64 exponent bytes, followed by the mantissas (8 or 4 bits each, sign first) face by face.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tt/runtime/types.h"

namespace tt::runtime {

// `tile` has 1024 row-major values. Returns 1088 bytes for BfpBFloat8 and 576 for BfpBFloat4. Throws
// InputDtype and InputShape errors, as the functions below do.
TT_RUNTIME_API std::vector<uint8_t> pack_tile(std::span<const float> tile, DataType dtype);
TT_RUNTIME_API std::vector<float> unpack_tile(std::span<const uint8_t> bytes, DataType dtype);

// Rounds a row-major (rows x columns) matrix in place to the values that block floats can represent.
TT_RUNTIME_API void round_to_blocks(std::span<float> values, int64_t columns, DataType dtype);

}  // namespace tt::runtime

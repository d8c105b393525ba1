// Numbers in memory of any data type of a package.
#pragma once

#include <tt/runtime/runtime.h>

#include <bit>
#include <numeric>
#include <stdexcept>
#include <vector>

// Memory for a tensor: a row-major buffer, and a vector that owns its bytes.
struct Numbers {
  explicit Numbers(const tt::runtime::NamedTensor& tensor)
      : count(std::accumulate(tensor.shape.begin(), tensor.shape.end(), int64_t{1}, std::multiplies<>())) {
    each(tensor.dtype, [&]<class T>(T) { bytes.resize(count * sizeof(T)); });
    buffer = tt::runtime::row_major(bytes.data(), tensor.shape, tensor.dtype);
  }
  // Fills it with 0, 1/7, ..., 6/7, 0, ...; integers with 0, 1, ..., 6, 0, ...; booleans with what these are.
  void fill() {
    each(buffer.dtype, [&]<class T>(T) {
      const int divisor = std::is_integral_v<T> ? 1 : 7;
      for (int64_t i = 0; i < count; ++i) reinterpret_cast<T*>(bytes.data())[i] = T(float(i % 7) / divisor);
    });
  }
  double sum() const {
    double result = 0;
    each(buffer.dtype, [&]<class T>(T) {
      for (int64_t i = 0; i < count; ++i)
        result += static_cast<double>(reinterpret_cast<const T*>(bytes.data())[i]);
    });
    return result;
  }

  int64_t count;
  std::vector<std::byte> bytes;
  tt::runtime::HostBuffer buffer;

 private:
  struct Brain {  // bfloat16, the upper half of a float
    Brain() = default;
    explicit Brain(float value) {
      const auto bits = std::bit_cast<uint32_t>(value);
      upper =
          static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);  // to the nearest, ties to even
    }
    operator float() const { return std::bit_cast<float>(uint32_t{upper} << 16); }
    uint16_t upper = 0;
  };

  // Calls `f` with a zero of the type in C++ that has this data type.
  template <class F>
  static void each(tt::runtime::DataType dtype, F f) {
    using Type = tt::runtime::DataType;
    switch (dtype) {
      case Type::Float32:
        return f(float{});
      case Type::Float64:
        return f(double{});
      case Type::Float16:
        return f(_Float16{});
      case Type::BFloat16:
        return f(Brain{});
      case Type::Int64:
        return f(int64_t{});
      case Type::Int32:
        return f(int32_t{});
      case Type::Int16:
        return f(int16_t{});
      case Type::Int8:
        return f(int8_t{});
      case Type::UInt64:
        return f(uint64_t{});
      case Type::UInt32:
        return f(uint32_t{});
      case Type::UInt16:
        return f(uint16_t{});
      case Type::UInt8:
        return f(uint8_t{});
      case Type::Bool:
        return f(bool{});
      default:
        throw std::invalid_argument(std::string("no memory of the host has the type ") + name(dtype));
    }
  }
};

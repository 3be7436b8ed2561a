// Conversion of stored tensors to f32, block by block. Layouts are those of the GGUF format.
#include "tensor_types.h"

#include <cstring>
#include <string>

#include "engine_error.h"

namespace rollscope {

namespace {

constexpr TensorTypeInfo kTypes[] = {
    {TensorType::f32, "F32", 1, 4},      {TensorType::f16, "F16", 1, 2},      {TensorType::bf16, "BF16", 1, 2},
    {TensorType::f64, "F64", 1, 8},      {TensorType::q4_0, "Q4_0", 32, 18},  {TensorType::q4_1, "Q4_1", 32, 20},
    {TensorType::q8_0, "Q8_0", 32, 34},  {TensorType::q4_k, "Q4_K", 256, 144}, {TensorType::q6_k, "Q6_K", 256, 210},
};

template <typename T>
T read(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

float from_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

float half(const uint8_t* from) {
  const uint32_t bits = read<uint16_t>(from);
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 5.9604644775390625e-8f;  // 2⁻²⁴
    return sign != 0 ? -magnitude : magnitude;
  }
  if (exponent == 31) return from_bits(sign | 0x7f800000u | (mantissa << 13));
  return from_bits(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

void block_q4_0(float* y, const uint8_t* x) {
  const float scale = half(x);
  for (int i = 0; i < 16; i++) {
    y[i] = static_cast<float>((x[2 + i] & 15) - 8) * scale;
    y[16 + i] = static_cast<float>((x[2 + i] >> 4) - 8) * scale;
  }
}

void block_q4_1(float* y, const uint8_t* x) {
  const float scale = half(x), least = half(x + 2);
  for (int i = 0; i < 16; i++) {
    y[i] = static_cast<float>(x[4 + i] & 15) * scale + least;
    y[16 + i] = static_cast<float>(x[4 + i] >> 4) * scale + least;
  }
}

void block_q8_0(float* y, const uint8_t* x) {
  const float scale = half(x);
  for (int i = 0; i < 32; i++) y[i] = static_cast<float>(static_cast<int8_t>(x[2 + i])) * scale;
}

/// Eight groups of 32 with 6-bit scales and minima: y = d · scale · q − d_min · minimum.
void block_q4_k(float* y, const uint8_t* x) {
  const float d = half(x), d_min = half(x + 2);
  const uint8_t* packed = x + 4;
  const uint8_t* quants = x + 16;
  for (int group = 0; group < 8; group++) {
    int scale, minimum;
    if (group < 4) {
      scale = packed[group] & 63;
      minimum = packed[group + 4] & 63;
    } else {
      scale = (packed[group + 4] & 15) | ((packed[group - 4] >> 6) << 4);
      minimum = (packed[group + 4] >> 4) | ((packed[group] >> 6) << 4);
    }
    const uint8_t* q = quants + group / 2 * 32;
    const int shift = group % 2 * 4;
    for (int i = 0; i < 32; i++)
      y[group * 32 + i] = d * static_cast<float>(scale) * static_cast<float>((q[i] >> shift) & 15) - d_min * static_cast<float>(minimum);
  }
}

/// Sixteen groups of 16 with 8-bit scales; six bits a value, four of them in `low`, two in `high`.
void block_q6_k(float* y, const uint8_t* x) {
  const float d = half(x + 208);
  for (int part = 0; part < 2; part++) {
    const uint8_t* low = x + part * 64;
    const uint8_t* high = x + 128 + part * 32;
    const uint8_t* scales = x + 192 + part * 8;
    for (int quarter = 0; quarter < 4; quarter++) {
      for (int i = 0; i < 32; i++) {
        const int nibble = (low[i + quarter % 2 * 32] >> (quarter / 2 * 4)) & 15;
        const int value = (nibble | (((high[i] >> (quarter * 2)) & 3) << 4)) - 32;
        const int scale = static_cast<int8_t>(scales[quarter * 2 + i / 16]);
        y[part * 128 + quarter * 32 + i] = d * static_cast<float>(scale) * static_cast<float>(value);
      }
    }
  }
}

}  // namespace

const TensorTypeInfo& tensor_type(std::string_view name) {
  for (const TensorTypeInfo& info : kTypes)
    if (info.name == name) return info;
  throw EngineError("ENGINE_TENSOR_TYPE_UNKNOWN", "The engine cannot read tensors of type " + std::string(name) + ".",
                    "Use a file with F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K or Q6_K tensors.");
}

void dequantise(float* to, const uint8_t* from, int64_t count, TensorType type) {
  switch (type) {
    case TensorType::f32:
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
      return;
    case TensorType::f64:
      for (int64_t i = 0; i < count; i++) to[i] = static_cast<float>(read<double>(from + 8 * i));
      return;
    case TensorType::f16:
      for (int64_t i = 0; i < count; i++) to[i] = half(from + 2 * i);
      return;
    case TensorType::bf16:
      for (int64_t i = 0; i < count; i++) to[i] = from_bits(static_cast<uint32_t>(read<uint16_t>(from + 2 * i)) << 16);
      return;
    case TensorType::q4_0:
      for (int64_t i = 0; i < count / 32; i++) block_q4_0(to + 32 * i, from + 18 * i);
      return;
    case TensorType::q4_1:
      for (int64_t i = 0; i < count / 32; i++) block_q4_1(to + 32 * i, from + 20 * i);
      return;
    case TensorType::q8_0:
      for (int64_t i = 0; i < count / 32; i++) block_q8_0(to + 32 * i, from + 34 * i);
      return;
    case TensorType::q4_k:
      for (int64_t i = 0; i < count / 256; i++) block_q4_k(to + 256 * i, from + 144 * i);
      return;
    case TensorType::q6_k:
      for (int64_t i = 0; i < count / 256; i++) block_q6_k(to + 256 * i, from + 210 * i);
      return;
  }
}

}  // namespace rollscope

// Element types of stored tensors and how many bytes their blocks take.
#pragma once

#include <cstdint>
#include <string_view>

namespace rollscope {

enum class TensorType { f32, f16, bf16, f64, q4_0, q4_1, q8_0, q4_k, q6_k };

struct TensorTypeInfo {
  TensorType type;
  std::string_view name;
  int64_t block;        // elements in a block
  int64_t block_bytes;  // bytes of a block
};

/// Throws ENGINE_TENSOR_TYPE_UNKNOWN.
const TensorTypeInfo& tensor_type(std::string_view name);

/// Converts `count` elements (a multiple of the type's block) to f32.
void dequantise(float* to, const uint8_t* from, int64_t count, TensorType type);

}  // namespace rollscope

// Reads tensors from model files into an arena and writes an arena as a safetensors file. What lies where is decided by the
// caller (TypeScript parses and writes the headers); here only bytes are moved, checked and converted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cancel_token.h"
#include "parameters.h"

namespace rollscope {

struct TensorSource {
  std::string tensor;        // name in the layout
  int64_t file = 0;          // index of the path
  int64_t offset = 0;        // bytes
  int64_t bytes = 0;
  std::string type;          // name of a TensorType
  int64_t interleaved_heads = 0;  // > 0: rows of each head are stored as pairs (i, i + half) side by side, as GGUF keeps llama's q and k
};

/// Every source's tensor receives its contents. Errors: ENGINE_MODEL_NOT_FOUND, ENGINE_FILE_TRUNCATED, ENGINE_TENSOR_MISSING (unknown name),
/// ENGINE_TENSOR_TYPE_UNKNOWN, ENGINE_SHAPE_MISMATCH, ENGINE_NON_FINITE, ENGINE_CANCELLED.
void read_tensors(Arena& arena, const ParameterLayout& layout, const std::vector<std::string>& paths,
                  const std::vector<TensorSource>& sources, const CancelToken& cancel);

/// A part of an arena to be written, in file order.
struct TensorPart {
  const float* data;
  int64_t size;  // floats
};

/// Header bytes, then the parts; flushed to the disk before it returns. Throws ENGINE_SAVE_FAILED.
void write_tensors(const std::string& path, const std::string& header, const std::vector<TensorPart>& parts, const CancelToken& cancel);

}  // namespace rollscope

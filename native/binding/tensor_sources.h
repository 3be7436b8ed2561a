// Where tensors lie in files, as JavaScript says it.
#pragma once

#include <napi.h>

#include <vector>

#include "read_value.h"
#include "tensor_files.h"

namespace rollscope::binding {

/// { tensor, file, offset, bytes, type, interleavedHeads }[]
inline std::vector<TensorSource> read_sources(const Napi::Value& from) {
  const auto array = from.As<Napi::Array>();
  std::vector<TensorSource> sources;
  for (uint32_t i = 0; i < array.Length(); i++) {
    const Napi::Object item = array.Get(i).As<Napi::Object>();
    TensorSource source;
    source.tensor = text_at(item, "tensor");
    source.file = integer_at(item, "file");
    source.offset = integer_at(item, "offset");
    source.bytes = integer_at(item, "bytes");
    source.type = text_at(item, "type");
    source.interleaved_heads = integer_at(item, "interleavedHeads");
    sources.push_back(std::move(source));
  }
  return sources;
}

}  // namespace rollscope::binding

// Owning, 64-byte aligned, zero-initialised array; running out of memory is an EngineError with numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "engine_error.h"

namespace rollscope {

template <typename T>
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(int64_t size) { resize(size); }

  /// Discards the contents.
  void resize(int64_t size) {
    memory_.reset();
    size_ = 0;
    if (size <= 0) return;
    const size_t bytes = (static_cast<size_t>(size) * sizeof(T) + 63) / 64 * 64;
    void* block = std::aligned_alloc(64, bytes);
    if (block == nullptr) {
      throw EngineError("ENGINE_OUT_OF_MEMORY", "The engine could not get " + std::to_string(bytes >> 20) + " MiB of memory.",
                        "Close other programs, lower training.tokenBudget, or use a smaller model.");
    }
    std::memset(block, 0, bytes);
    memory_.reset(static_cast<T*>(block));
    size_ = size;
  }

  /// Grows only; contents are undefined after growth.
  void reserve(int64_t size) {
    if (size > size_) resize(size);
  }

  T* data() { return memory_.get(); }
  const T* data() const { return memory_.get(); }
  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<T> span() { return {data(), static_cast<size_t>(size_)}; }
  std::span<const T> span() const { return {data(), static_cast<size_t>(size_)}; }
  void clear() { std::memset(data(), 0, static_cast<size_t>(size_) * sizeof(T)); }

 private:
  struct Free {
    void operator()(T* block) const { std::free(block); }
  };
  std::unique_ptr<T, Free> memory_;
  int64_t size_ = 0;
};

}  // namespace rollscope

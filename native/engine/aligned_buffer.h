// Owning, aligned, zero-initialised array; running out of memory is an EngineError with numbers. Large ones are mapped by
// themselves in huge pages: gigabytes of small pages cost seconds of faults and slow every product down.
#pragma once

#include <sys/mman.h>

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
    memory_ = bytes >= kLargeBytes ? map(bytes) : allocate(bytes);
    if (memory_ == nullptr) {
      throw EngineError("ENGINE_OUT_OF_MEMORY", "The engine could not get " + std::to_string(bytes >> 20) + " MiB of memory.",
                        "Close other programs, lower training.tokenBudget, or use a smaller model.");
    }
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
  static constexpr size_t kHugePage = size_t{2} << 20;
  static constexpr size_t kLargeBytes = size_t{8} << 20;

  struct Free {
    size_t mapped = 0;  // 0: from the heap
    void operator()(T* block) const {
      if (mapped > 0) {
        munmap(block, mapped);
      } else {
        std::free(block);
      }
    }
  };
  using Block = std::unique_ptr<T, Free>;

  static Block allocate(size_t bytes) {
    void* block = std::aligned_alloc(64, bytes);
    if (block != nullptr) std::memset(block, 0, bytes);
    return Block(static_cast<T*>(block));
  }

  /// Zeroed by the system page by page, when a thread first touches it.
  static Block map(size_t bytes) {
    const size_t mapped = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    void* whole = mmap(nullptr, mapped + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED) return nullptr;
    const auto start = reinterpret_cast<uintptr_t>(whole);
    const size_t before = (kHugePage - start % kHugePage) % kHugePage;
    if (before > 0) munmap(whole, before);
    auto* block = reinterpret_cast<char*>(start + before);
    munmap(block + mapped, kHugePage - before);
#if defined(MADV_HUGEPAGE)
    madvise(block, mapped, MADV_HUGEPAGE);
#endif
    return Block(reinterpret_cast<T*>(block), Free{mapped});
  }

  Block memory_;
  int64_t size_ = 0;
};

}  // namespace rollscope

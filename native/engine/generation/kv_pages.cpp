// Block allocation of the key/value cache.
#include "generation/kv_pages.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <string>

#include "engine_error.h"

namespace rollscope {

namespace {

constexpr int64_t slab_bytes = int64_t{16} << 20;
constexpr int64_t huge_page = int64_t{2} << 20;

}  // namespace

KvPages::KvPages(const KvGeometry& geometry, int64_t limit_bytes)
    : geometry_(geometry),
      capacity_(std::clamp<int64_t>(limit_bytes / geometry.block_bytes(), 1, INT32_MAX)),
      slab_blocks_(std::clamp<int64_t>(slab_bytes / geometry.block_bytes(), 1, capacity_)) {}

void KvPages::add_slab() {
  const auto first = static_cast<int64_t>(blocks_.size());
  const int64_t count = std::min(slab_blocks_, capacity_ - first);
  const int64_t bytes = (slab_blocks_ * geometry_.block_bytes() + huge_page - 1) / huge_page * huge_page;
  auto* slab = static_cast<float*>(std::aligned_alloc(static_cast<size_t>(huge_page), static_cast<size_t>(bytes)));
  if (slab == nullptr) {
    throw EngineError("ENGINE_OUT_OF_MEMORY",
                      "The engine could not get " + std::to_string(bytes >> 20) + " MiB for the key/value cache beside the " +
                          std::to_string(first * geometry_.block_bytes() >> 20) + " MiB it has.",
                      "Lower the engine's cache limit, close other programs, or use a smaller model.");
  }
  slabs_.emplace_back(slab);
#if defined(__linux__)
  // Attention walks small pieces of many blocks: with small pages it would mostly wait for address translation.
  madvise(slab, static_cast<size_t>(bytes), MADV_HUGEPAGE);
#endif
  blocks_.resize(static_cast<size_t>(first + count));
  for (int64_t index = count - 1; index >= 0; --index) free_.push_back(static_cast<int32_t>(first + index));
}

int32_t KvPages::allocate() {
  if (used_ >= capacity_) return -1;
  if (free_.empty()) add_slab();
  const int32_t index = free_.back();
  free_.pop_back();
  blocks_[static_cast<size_t>(index)].references = 1;
  ++used_;
  return index;
}

void KvPages::release(int32_t index) {
  Block& block = blocks_[static_cast<size_t>(index)];
  if (--block.references > 0) return;
  block.routing.clear();
  free_.push_back(index);
  --used_;
}

void KvPages::copy(int32_t from, int32_t to) {
  std::copy_n(data(from), geometry_.block_floats(), data(to));
  blocks_[static_cast<size_t>(to)].routing = blocks_[static_cast<size_t>(from)].routing;
}

void KvPages::release_memory() {
  slabs_.clear();
  blocks_.clear();
  free_.clear();
  used_ = 0;
}

}  // namespace rollscope

// Block allocation of the key/value cache.
#include "generation/kv_pages.h"

#include <algorithm>

namespace rollscope {

KvPages::KvPages(const KvGeometry& geometry, int64_t limit_bytes)
    : geometry_(geometry), capacity_(std::clamp<int64_t>(limit_bytes / geometry.block_bytes(), 1, INT32_MAX)) {}

int32_t KvPages::allocate() {
  int32_t index;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else {
    if (used_ >= capacity_) return -1;
    index = static_cast<int32_t>(blocks_.size());
    blocks_.emplace_back();
  }
  Block& block = blocks_[static_cast<size_t>(index)];
  if (block.floats.empty()) {
    try {
      block.floats.resize(geometry_.block_floats());
    } catch (...) {
      free_.push_back(index);
      throw;
    }
  }
  block.references = 1;
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
  Block& source = blocks_[static_cast<size_t>(from)];
  Block& target = blocks_[static_cast<size_t>(to)];
  std::copy_n(source.floats.data(), geometry_.block_floats(), target.floats.data());
  target.routing = source.routing;
}

void KvPages::release_memory() {
  for (const int32_t index : free_) blocks_[static_cast<size_t>(index)].floats.resize(0);
}

}  // namespace rollscope

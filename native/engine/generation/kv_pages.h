// The key/value cache as blocks of 16 positions, counted by reference. Memory is taken when a block is first used, up to a
// limit, and given back by `release_memory`. It never knows which tokens a block stands for: that is the prefix tree's.
//
// One block holds, for every layer and key/value head: keys transposed [head_dim][16], so that one vector holds one
// coordinate of 16 keys; values [16][value_stride], value_stride = head_dim rounded up to 16 (the rest stays zero).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "aligned_buffer.h"

namespace rollscope {

constexpr int64_t block_positions = 16;

struct KvGeometry {
  int64_t layers = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;

  int64_t value_stride() const { return (head_dim + 15) / 16 * 16; }
  int64_t head_floats() const { return block_positions * (head_dim + value_stride()); }
  int64_t layer_floats() const { return kv_heads * head_floats(); }
  int64_t block_floats() const { return layers * layer_floats(); }
  int64_t block_bytes() const { return block_floats() * static_cast<int64_t>(sizeof(float)); }
};

class KvPages {
 public:
  /// `limit_bytes` bounds the cache; at least one block is always allowed.
  KvPages(const KvGeometry& geometry, int64_t limit_bytes);

  const KvGeometry& geometry() const { return geometry_; }
  int64_t capacity() const { return capacity_; }
  int64_t used() const { return used_; }
  int64_t free() const { return capacity_ - used_; }

  /// A block with one reference, or −1 when the limit is reached.
  int32_t allocate();
  void retain(int32_t block) { ++blocks_[static_cast<size_t>(block)].references; }
  void release(int32_t block);
  int32_t references(int32_t block) const { return blocks_[static_cast<size_t>(block)].references; }
  /// Copies all positions of all layers.
  void copy(int32_t from, int32_t to);

  float* keys(int32_t block, int64_t layer, int64_t kv_head) {
    return blocks_[static_cast<size_t>(block)].floats.data() + layer * geometry_.layer_floats() + kv_head * geometry_.head_floats();
  }
  float* values(int32_t block, int64_t layer, int64_t kv_head) {
    return keys(block, layer, kv_head) + block_positions * geometry_.head_dim;
  }
  /// First float of a block; layers follow each other every layer_floats().
  const float* data(int32_t block) const { return blocks_[static_cast<size_t>(block)].floats.data(); }

  /// Gives the memory of unreferenced blocks back to the system.
  void release_memory();

 private:
  struct Block {
    AlignedBuffer<float> floats;
    int32_t references = 0;
    /// Experts chosen for the block's input tokens [mixture layers][16][experts per token]; empty until routing is recorded.
    std::vector<int16_t> routing;
  };

  KvGeometry geometry_;
  int64_t capacity_;
  int64_t used_ = 0;
  std::vector<Block> blocks_;
  std::vector<int32_t> free_;
};

}  // namespace rollscope

// The key/value cache as blocks of 16 positions, counted by reference. Memory is taken in slabs as blocks are first used, up to
// a limit, and given back by `release_memory`. It never knows which tokens a block stands for: that is the prefix tree's.
//
// One block holds, for every layer and key/value head: keys transposed [head_dim][16], so that one vector holds one
// coordinate of 16 keys; values [16][value_stride], value_stride = head_dim rounded up to 16. What was never written is garbage.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

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

  /// First float of a block; layers follow each other every layer_floats().
  float* data(int32_t block) {
    return slabs_[static_cast<size_t>(block / slab_blocks_)].get() + block % slab_blocks_ * geometry_.block_floats();
  }

  /// Gives the memory of the cache back to the system; no block may be in use.
  void release_memory();

 private:
  struct Block {
    int32_t references = 0;
    /// Experts chosen for the block's input tokens [mixture layers][16][experts per token]; empty until routing is recorded.
    std::vector<int16_t> routing;
  };
  struct Free {
    void operator()(float* slab) const { std::free(slab); }
  };

  void add_slab();

  KvGeometry geometry_;
  int64_t capacity_;
  int64_t slab_blocks_;
  int64_t used_ = 0;
  std::vector<std::unique_ptr<float, Free>> slabs_;
  std::vector<Block> blocks_;
  std::vector<int32_t> free_;
};

}  // namespace rollscope

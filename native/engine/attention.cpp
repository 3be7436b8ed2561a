// Sizes of the attention kernels' workspace: packed keys and values of the batch, then a private part for each thread.
#include "attention.h"

namespace rollscope {

int64_t attention_forward_workspace(const AttentionShape& shape, int64_t padded_keys, int threads) {
  const int64_t packed = 2 * shape.kv_heads * padded_keys * shape.padded_dim();
  const int64_t own = shape.tile_rows() * (2 * shape.padded_dim() + kPanelKeys + 2);
  return packed + threads * (own + 2 * kPanelAlignment);
}

int64_t attention_backward_workspace(const AttentionShape& shape, int64_t padded_keys, int threads) {
  const int64_t packed = 5 * shape.kv_heads * padded_keys * shape.padded_dim();
  const int64_t own = shape.tile_rows() * (3 * shape.padded_dim() + 2 * kPanelKeys + 2);
  return packed + threads * (own + 2 * kPanelAlignment);
}

}  // namespace rollscope

// Sizes of the attention kernels' workspace: packed keys and values of the batch, then a private part for each thread.
#include "attention.h"

namespace rollscope {

namespace {

int64_t aligned(int64_t size) { return (size + kPanelAlignment - 1) / kPanelAlignment * kPanelAlignment; }

}  // namespace

int64_t attention_forward_part(const AttentionShape& shape, int64_t tokens) {
  const int64_t rows = shape.tile_rows();
  return rows * (2 * shape.padded_dim() + kPanelKeys) + 2 * aligned(rows) + aligned(tokens);
}

int64_t attention_backward_part(const AttentionShape& shape, int64_t tokens) {
  const int64_t rows = shape.tile_rows();
  return rows * (3 * shape.padded_dim() + 2 * kPanelKeys) + 2 * aligned(rows) + aligned(tokens);
}

int64_t attention_forward_workspace(const AttentionShape& shape, int64_t tokens, int64_t padded_keys, int threads) {
  return 2 * shape.kv_heads * padded_keys * shape.padded_dim() + threads * attention_forward_part(shape, tokens);
}

int64_t attention_backward_workspace(const AttentionShape& shape, int64_t tokens, int64_t padded_keys, int threads) {
  return 5 * shape.kv_heads * padded_keys * shape.padded_dim() + threads * attention_backward_part(shape, tokens);
}

}  // namespace rollscope

// The forward pass of generation: rows of several sequences through all layers, keys and values into cache blocks, logits
// only where they are wanted. A row's result is a function of its tokens alone, bit for bit. It owns activation memory and
// nothing else.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "aligned_buffer.h"
#include "generation/inference_weights.h"
#include "generation/kv_pages.h"
#include "kernels.h"
#include "matrix_products.h"
#include "model_config.h"

namespace rollscope {

/// Rows of one iteration; arrays are aligned.
struct InferenceRows {
  std::vector<int32_t> tokens;
  std::vector<int32_t> positions;
  std::vector<int32_t> tables;      // index of the row's first entry in `blocks`
  std::vector<float*> blocks;       // cache blocks of the sequences, in order of position
  std::vector<int32_t> wanted;      // rows whose logits are wanted, ascending
  /// No row attends to a position that another row computes: true while every sequence decodes.
  bool are_independent = false;

  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
  void clear();
};

class InferenceModel {
 public:
  InferenceModel(const ModelConfig& config, const KvGeometry& geometry);

  /// Computes the rows and keeps the final hidden state of the wanted ones. `cos_sin` is RopeTable's, long enough for all
  /// positions.
  void forward(MatrixProducts& products, const InferenceWeights& weights, const InferenceRows& rows, const float* cos_sin);
  /// Logits [count, vocabulary] of wanted rows [first, first + count); valid until the next call.
  const float* logits(MatrixProducts& products, const InferenceWeights& weights, int64_t first, int64_t count);

  void release_memory();

 private:
  void prepare_row(const InferenceWeights::Layer& layer, const InferenceRows& rows, const float* cos_sin, int64_t row);
  void store_row(const InferenceRows& rows, int64_t layer, int64_t row);
  void attend_head(const InferenceRows& rows, int64_t layer, int64_t row, int64_t from, int64_t kv_head);
  void decode_rows(const InferenceWeights::Layer& layer, const InferenceRows& rows, const float* cos_sin, int64_t index);
  void store_rows(const InferenceRows& rows, int64_t layer);
  void attend_rows(const InferenceRows& rows, std::span<const int32_t> active, int64_t layer);
  void add_bias(float* to, const float* bias, int64_t rows) const;
  void mixture(MatrixProducts& products, const InferenceWeights::Layer& layer, int64_t rows);
  void reserve(int64_t rows);

  const ModelConfig& config_;
  KvGeometry geometry_;
  int64_t reserved_rows_ = 0;
  AlignedBuffer<float> state_;       // [rows, hidden] residual stream
  AlignedBuffer<float> normed_;      // [rows, hidden]
  AlignedBuffer<float> qkv_;         // [rows, qkv_width]
  AlignedBuffer<float> context_;     // [rows, query_width]
  AlignedBuffer<float> delta_;       // [rows, hidden]
  AlignedBuffer<float> gate_up_;     // [rows, 2 * intermediate], the widest kind of layer
  AlignedBuffer<float> activated_;   // [rows, intermediate]
  AlignedBuffer<float> router_;      // [rows, experts]
  AlignedBuffer<float> expert_in_, expert_out_;  // [rows, hidden]
  AlignedBuffer<float> logits_;
  std::vector<int32_t> all_rows_;
  std::vector<std::vector<int32_t>> expert_rows_;
  std::vector<std::vector<float>> expert_weights_;
};

}  // namespace rollscope

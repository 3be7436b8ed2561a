// What a forward pass leaves behind for the backward pass, where it lies, and how much memory that takes: counted before a
// step begins, so that a batch which cannot fit is refused with numbers instead of being killed.
#pragma once

#include <cstdint>
#include <vector>

#include "aligned_buffer.h"
#include "attention.h"
#include "model_config.h"

namespace rollscope {

/// One layer's saved values for n tokens. Pointers into Activations.
struct LayerTape {
  float* input = nullptr;        // [n, hidden] residual stream before the layer
  float* before_norm = nullptr;  // [n, qkv_width] q, k, v before their norms; only with query_key_norm
  float* qkv = nullptr;          // [n, qkv_width] after rotation
  float* attention = nullptr;    // [n, query_width] attention's output before the output matrix
  float* log_sums = nullptr;     // [n, heads]
  float* middle = nullptr;       // [n, hidden] residual stream after attention
  float* gate_up = nullptr;      // dense: [n, 2 · intermediate]; mixture: [n · k, 2 · width] ordered by expert
  float* probabilities = nullptr;  // mixture: [n, experts]
  float* mix = nullptr;          // mixture: [n, k] weights of the chosen experts
  int32_t* experts = nullptr;    // mixture: [n, k] chosen experts, most probable first
};

/// Buffers that hold nothing between two layers.
struct LayerScratch {
  float* normed = nullptr;      // [n, hidden]
  float* delta = nullptr;       // [n, hidden]
  float* wide = nullptr;        // [n, intermediate], or for mixtures [n · k, 2 · width + 2 · hidden] in parts
  float* gradient = nullptr;    // [n, hidden]; the gradient of the residual stream
  float* qkv_gradient = nullptr;  // [n, qkv_width]
  float* attention_gradient = nullptr;  // [n, query_width]
  float* router_gradient = nullptr;  // [n, experts]
  float* partial = nullptr;     // partial sums over blocks of rows
  float* attention_workspace = nullptr;
};

/// Everything a batch needs, in floats.
struct ActivationSizes {
  int64_t layer_input;   // one checkpointed layer
  int64_t layer_rest;    // what a retained layer adds
  int64_t scratch_forward;
  int64_t scratch_backward;

  ActivationSizes(const ModelConfig& config, int64_t tokens, int64_t padded_keys, int threads);
};

/// Owns the buffers; they grow and are kept.
class Activations {
 public:
  explicit Activations(const ModelConfig& config) : config_(config) {}

  /// Room for a forward pass that keeps nothing.
  void prepare_forward(int64_t tokens, int64_t padded_keys, int threads);
  /// Room for forward and backward; the first `checkpointed` layers keep their input only.
  void prepare_gradient(int64_t tokens, int64_t padded_keys, int threads, int64_t checkpointed);

  /// The tape of a layer that is not kept.
  const LayerTape& passing() const { return passing_; }
  const LayerTape& kept(int64_t layer) const { return kept_[static_cast<size_t>(layer)]; }
  const LayerScratch& scratch() const { return scratch_; }
  int64_t bytes() const;
  /// Gives the memory back.
  void clear();

 private:
  LayerTape carve_layer(float*& at, int64_t tokens, bool with_input) const;
  void carve_scratch(int64_t tokens, int64_t padded_keys, int threads, bool backward);

  const ModelConfig& config_;
  AlignedBuffer<float> kept_memory_, passing_memory_, scratch_memory_;
  std::vector<LayerTape> kept_;
  LayerTape passing_;
  LayerScratch scratch_;
};

}  // namespace rollscope

// Sizes and places of activations; see activations.h.
#include "training/activations.h"

#include <algorithm>

#include "training/forest_plan.h"

namespace rollscope {

namespace {

int64_t aligned(int64_t size) { return (size + 15) / 16 * 16; }

float* take(float*& at, int64_t size) {
  float* piece = at;
  at += aligned(size);
  return size > 0 ? piece : nullptr;
}

/// Widths of what one token takes in a layer.
struct Widths {
  int64_t gate_up;  // floats per token, dense or mixture, whichever the model needs most
  int64_t wide;
  int64_t experts;
  int64_t chosen;

  explicit Widths(const ModelConfig& config) {
    const MixtureConfig& mixture = config.mixture;
    experts = mixture.experts;
    chosen = mixture.experts_per_token;
    const bool any_dense =
        mixture.experts == 0 || std::any_of(mixture.is_mixture.begin(), mixture.is_mixture.end(), [](uint8_t is) { return is == 0; });
    gate_up = std::max(any_dense ? 2 * config.intermediate : 0, chosen * 2 * mixture.intermediate);
    wide = std::max(any_dense ? config.intermediate : 0, chosen * (2 * mixture.intermediate + 2 * config.hidden));
  }
};

int64_t partial_size(const ModelConfig& config, int64_t tokens) {
  const int64_t width = std::max(config.hidden, config.qkv_width() + 2 * config.head_dim);
  return (tokens + 63) / 64 * width;
}

}  // namespace

ActivationSizes::ActivationSizes(const ModelConfig& config, int64_t tokens, int64_t padded_keys, int threads) {
  const Widths widths(config);
  const AttentionShape shape = attention_shape(config);
  layer_input = aligned(tokens * config.hidden);
  layer_rest = (config.query_key_norm ? aligned(tokens * config.qkv_width()) : 0) + aligned(tokens * config.qkv_width()) +
               aligned(tokens * config.query_width()) + aligned(tokens * config.heads) + aligned(tokens * config.hidden) +
               aligned(tokens * widths.gate_up) + aligned(tokens * widths.experts) + 2 * aligned(tokens * widths.chosen);
  scratch_forward = 2 * aligned(tokens * config.hidden) + aligned(tokens * widths.wide) +
                    aligned(attention_forward_workspace(shape, tokens, padded_keys, threads));
  scratch_backward = 3 * aligned(tokens * config.hidden) + aligned(tokens * widths.wide) + aligned(tokens * config.qkv_width()) +
                     aligned(tokens * config.query_width()) + aligned(tokens * widths.experts) + aligned(partial_size(config, tokens)) +
                     aligned(attention_backward_workspace(shape, tokens, padded_keys, threads));
}

LayerTape Activations::carve_layer(float*& at, int64_t tokens, bool with_input) const {
  const Widths widths(config_);
  LayerTape tape;
  if (with_input) tape.input = take(at, tokens * config_.hidden);
  tape.before_norm = take(at, config_.query_key_norm ? tokens * config_.qkv_width() : 0);
  tape.qkv = take(at, tokens * config_.qkv_width());
  tape.attention = take(at, tokens * config_.query_width());
  tape.log_sums = take(at, tokens * config_.heads);
  tape.middle = take(at, tokens * config_.hidden);
  tape.gate_up = take(at, tokens * widths.gate_up);
  tape.probabilities = take(at, tokens * widths.experts);
  tape.mix = take(at, tokens * widths.chosen);
  tape.experts = reinterpret_cast<int32_t*>(take(at, tokens * widths.chosen));
  return tape;
}

void Activations::carve_scratch(int64_t tokens, int64_t padded_keys, int threads, bool backward) {
  const Widths widths(config_);
  const ActivationSizes sizes(config_, tokens, padded_keys, threads);
  scratch_memory_.reserve(backward ? sizes.scratch_backward : sizes.scratch_forward);
  float* at = scratch_memory_.data();
  scratch_ = {};
  scratch_.normed = take(at, tokens * config_.hidden);
  scratch_.delta = take(at, tokens * config_.hidden);
  scratch_.wide = take(at, tokens * widths.wide);
  if (backward) {
    scratch_.gradient = take(at, tokens * config_.hidden);
    scratch_.qkv_gradient = take(at, tokens * config_.qkv_width());
    scratch_.attention_gradient = take(at, tokens * config_.query_width());
    scratch_.router_gradient = take(at, tokens * widths.experts);
    scratch_.partial = take(at, partial_size(config_, tokens));
  }
  scratch_.attention_workspace = at;
}

void Activations::prepare_forward(int64_t tokens, int64_t padded_keys, int threads) {
  const ActivationSizes sizes(config_, tokens, padded_keys, threads);
  passing_memory_.reserve(sizes.layer_input + sizes.layer_rest);
  float* at = passing_memory_.data();
  passing_ = carve_layer(at, tokens, true);
  carve_scratch(tokens, padded_keys, threads, false);
}

void Activations::prepare_gradient(int64_t tokens, int64_t padded_keys, int threads, int64_t checkpointed) {
  const ActivationSizes sizes(config_, tokens, padded_keys, threads);
  const int64_t retained = config_.layers - checkpointed;
  kept_memory_.reserve(config_.layers * sizes.layer_input + retained * sizes.layer_rest + (checkpointed > 0 ? sizes.layer_rest : 0));
  float* at = kept_memory_.data();
  kept_.assign(static_cast<size_t>(config_.layers), LayerTape{});
  LayerTape shared;
  if (checkpointed > 0) shared = carve_layer(at, tokens, false);
  for (int64_t layer = 0; layer < config_.layers; layer++) {
    LayerTape& tape = kept_[static_cast<size_t>(layer)];
    if (layer < checkpointed) {
      tape = shared;
      tape.input = take(at, tokens * config_.hidden);
    } else {
      tape = carve_layer(at, tokens, true);
    }
  }
  carve_scratch(tokens, padded_keys, threads, true);
}

int64_t Activations::bytes() const {
  return (kept_memory_.size() + passing_memory_.size() + scratch_memory_.size()) * static_cast<int64_t>(sizeof(float));
}

void Activations::clear() {
  kept_memory_.resize(0);
  passing_memory_.resize(0);
  scratch_memory_.resize(0);
  kept_.clear();
}

}  // namespace rollscope

// The layers of generation. Formulas are those of training; what differs is where keys and values live.
#include "generation/inference_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine_error.h"
#include "generation/generation_kernels.h"

namespace rollscope {

namespace {

/// Below this many floats a second thread costs more than it brings.
constexpr int64_t parallel_floats = 16384;

}  // namespace

void InferenceRows::clear() {
  tokens.clear();
  positions.clear();
  tables.clear();
  blocks.clear();
  wanted.clear();
}

InferenceModel::InferenceModel(const ModelConfig& config, const KvGeometry& geometry) : config_(config), geometry_(geometry) {
  if (config.head_dim > max_head_dim) {
    throw EngineError("ENGINE_UNSUPPORTED",
                      "The model's heads have " + std::to_string(config.head_dim) + " dimensions; generation serves up to " +
                          std::to_string(max_head_dim) + ".",
                      "Use a model with smaller heads.");
  }
  const auto experts = static_cast<size_t>(config.mixture.experts);
  expert_rows_.resize(experts);
  expert_weights_.resize(experts);
}

void InferenceModel::reserve(int64_t rows) {
  if (rows <= reserved_rows_) return;
  const int64_t intermediate = std::max(config_.intermediate, config_.mixture.intermediate);
  state_.resize(rows * config_.hidden);
  normed_.resize(rows * config_.hidden);
  qkv_.resize(rows * config_.qkv_width());
  context_.resize(rows * config_.query_width());
  delta_.resize(rows * config_.hidden);
  gate_up_.resize(rows * 2 * intermediate);
  activated_.resize(rows * intermediate);
  if (config_.mixture.experts > 0) {
    router_.resize(rows * config_.mixture.experts);
    expert_in_.resize(rows * config_.hidden);
    expert_out_.resize(rows * config_.hidden);
  }
  all_rows_.resize(static_cast<size_t>(rows));
  std::iota(all_rows_.begin(), all_rows_.end(), 0);
  reserved_rows_ = rows;
}

void InferenceModel::release_memory() {
  for (AlignedBuffer<float>* buffer : {&state_, &normed_, &qkv_, &context_, &delta_, &gate_up_, &activated_, &router_, &expert_in_,
                                       &expert_out_, &logits_}) {
    buffer->resize(0);
  }
  reserved_rows_ = 0;
}

void InferenceModel::forward(MatrixProducts& products, const InferenceWeights& weights, const InferenceRows& rows, const float* cos_sin) {
  const Kernels& passes = kernels();
  const int64_t hidden = config_.hidden;
  int64_t count = rows.size();
  reserve(count);
  for (int64_t row = 0; row < count; ++row) {
    std::copy_n(weights.embedding() + rows.tokens[static_cast<size_t>(row)] * hidden, hidden, state_.data() + row * hidden);
  }
  std::span<const int32_t> active(all_rows_.data(), static_cast<size_t>(count));
  for (int64_t index = 0; index < config_.layers; ++index) {
    const InferenceWeights::Layer& layer = weights.layer(index);
    if (index == 0) {
      passes.rms_norm(normed_.data(), state_.data(), layer.attention_norm, count, hidden, config_.rms_epsilon);
    } else {
      passes.add_rms_norm(state_.data(), normed_.data(), state_.data(), delta_.data(), layer.attention_norm, count, hidden, config_.rms_epsilon);
    }
    products.forward(qkv_.data(), normed_.data(), *layer.qkv, count);
    if (rows.are_independent) {
      decode_rows(layer, rows, cos_sin, index);
    } else {
      passes.prepare_qkv(qkv_.data(), nullptr, layer.qkv_bias, layer.query_norm, layer.key_norm, cos_sin, rows.positions.data(), count,
                         config_.heads, config_.kv_heads, config_.head_dim, config_.rms_epsilon);
      store_rows(rows, index);
      if (index + 1 == config_.layers) {
        // What follows the last layer's keys and values serves the wanted rows only.
        active = rows.wanted;
        count = static_cast<int64_t>(active.size());
        for (int64_t row = 0; row < count; ++row) {
          const int64_t from = active[static_cast<size_t>(row)];
          if (from == row) continue;
          std::copy_n(state_.data() + from * hidden, hidden, state_.data() + row * hidden);
          std::copy_n(qkv_.data() + from * config_.qkv_width(), config_.query_width(), qkv_.data() + row * config_.qkv_width());
        }
        if (count == 0) return;
      }
      attend_rows(rows, active, index);
    }
    products.forward(delta_.data(), context_.data(), *layer.output, count);
    if (layer.output_bias != nullptr) add_bias(delta_.data(), layer.output_bias, count);
    passes.add_rms_norm(state_.data(), normed_.data(), state_.data(), delta_.data(), layer.mlp_norm, count, hidden, config_.rms_epsilon);
    if (layer.router != nullptr) {
      mixture(products, layer, count);
    } else {
      products.forward(gate_up_.data(), normed_.data(), *layer.gate_up, count);
      passes.swiglu(activated_.data(), gate_up_.data(), count, config_.intermediate);
      products.forward(delta_.data(), activated_.data(), *layer.down, count);
    }
  }
  passes.add_rms_norm(state_.data(), normed_.data(), state_.data(), delta_.data(), weights.final_norm(), count, hidden, config_.rms_epsilon);
}

const float* InferenceModel::logits(MatrixProducts& products, const InferenceWeights& weights, int64_t first, int64_t count) {
  logits_.reserve(count * config_.vocabulary);
  products.forward(logits_.data(), normed_.data() + first * config_.hidden, weights.head(), count);
  return logits_.data();
}

void InferenceModel::prepare_row(const InferenceWeights::Layer& layer, const InferenceRows& rows, const float* cos_sin, int64_t row) {
  kernels().prepare_qkv(qkv_.data() + row * config_.qkv_width(), nullptr, layer.qkv_bias, layer.query_norm, layer.key_norm, cos_sin,
                        rows.positions.data() + row, 1, config_.heads, config_.kv_heads, config_.head_dim, config_.rms_epsilon);
}

void InferenceModel::store_row(const InferenceRows& rows, int64_t layer, int64_t row) {
  const int64_t head_dim = config_.head_dim;
  const int64_t position = rows.positions[static_cast<size_t>(row)];
  const int64_t lane = position % block_positions;
  const int64_t entry = rows.tables[static_cast<size_t>(row)] + position / block_positions;
  float* block = rows.blocks[static_cast<size_t>(entry)] + layer * geometry_.layer_floats();
  const float* key = qkv_.data() + row * config_.qkv_width() + config_.query_width();
  const float* value = key + config_.kv_width();
  for (int64_t head = 0; head < config_.kv_heads; ++head) {
    float* keys = block + head * geometry_.head_floats();
    float* values = keys + block_positions * head_dim + lane * geometry_.value_stride();
    for (int64_t d = 0; d < head_dim; ++d) keys[d * block_positions + lane] = key[head * head_dim + d];
    std::copy_n(value + head * head_dim, head_dim, values);
  }
}

/// `row` is a row of the iteration; its query stands at row `from` of qkv_, where its context goes too.
void InferenceModel::attend_head(const InferenceRows& rows, int64_t layer, int64_t row, int64_t from, int64_t kv_head) {
  const int64_t group = config_.heads / config_.kv_heads;
  AttentionHeads heads;
  heads.query = qkv_.data() + from * config_.qkv_width() + kv_head * group * config_.head_dim;
  heads.output = context_.data() + from * config_.query_width() + kv_head * group * config_.head_dim;
  heads.blocks = rows.blocks.data() + rows.tables[static_cast<size_t>(row)];
  heads.head_offset = layer * geometry_.layer_floats() + kv_head * geometry_.head_floats();
  heads.group = group;
  heads.head_dim = config_.head_dim;
  heads.value_stride = geometry_.value_stride();
  heads.positions = rows.positions[static_cast<size_t>(row)] + 1;
  heads.scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim));
  generation_kernels().attend(heads);
}

/// From q, k, v to the context of each row in one pass: the cache lines of its last block are touched once.
void InferenceModel::decode_rows(const InferenceWeights::Layer& layer, const InferenceRows& rows, const float* cos_sin, int64_t index) {
  const int64_t count = rows.size();
#pragma omp parallel for schedule(dynamic, 2) if (count * config_.qkv_width() >= parallel_floats)
  for (int64_t row = 0; row < count; ++row) {
    prepare_row(layer, rows, cos_sin, row);
    store_row(rows, index, row);
    for (int64_t kv_head = 0; kv_head < config_.kv_heads; ++kv_head) attend_head(rows, index, row, row, kv_head);
  }
}

void InferenceModel::store_rows(const InferenceRows& rows, int64_t layer) {
  const int64_t count = rows.size();
#pragma omp parallel for schedule(static) if (count * config_.kv_width() >= parallel_floats)
  for (int64_t row = 0; row < count; ++row) store_row(rows, layer, row);
}

void InferenceModel::attend_rows(const InferenceRows& rows, std::span<const int32_t> active, int64_t layer) {
  const auto count = static_cast<int64_t>(active.size());
  int64_t reads = 0;
  for (const int32_t row : active) reads += (rows.positions[static_cast<size_t>(row)] + 1) * config_.kv_width();
#pragma omp parallel for schedule(dynamic, 8) if (reads >= 4 * parallel_floats)
  for (int64_t item = 0; item < count * config_.kv_heads; ++item) {
    const int64_t from = item / config_.kv_heads;
    attend_head(rows, layer, active[static_cast<size_t>(from)], from, item % config_.kv_heads);
  }
}

/// to[rows, hidden] += bias.
void InferenceModel::add_bias(float* to, const float* bias, int64_t rows) const {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t d = 0; d < config_.hidden; ++d) to[row * config_.hidden + d] += bias[d];
  }
}

/// delta = Σ weight · expert(normed) over each row's experts, added in the order of expert numbers. Weights are a softmax over all
/// experts' router logits, gathered at the chosen ones and, where the model says so, divided by their sum.
void InferenceModel::mixture(MatrixProducts& products, const InferenceWeights::Layer& layer, int64_t rows) {
  const Kernels& passes = kernels();
  const MixtureConfig& shape = config_.mixture;
  const int64_t hidden = config_.hidden;
  products.forward(router_.data(), normed_.data(), *layer.router, rows);
  for (auto& list : expert_rows_) list.clear();
  for (auto& list : expert_weights_) list.clear();
  std::vector<int32_t> order(static_cast<size_t>(shape.experts));
  for (int64_t row = 0; row < rows; ++row) {
    float* scores = router_.data() + row * shape.experts;
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + shape.experts_per_token, order.end(),
                      [scores](int32_t a, int32_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
    const float largest = scores[order[0]];
    float total = 0.0f;
    for (int64_t expert = 0; expert < shape.experts; ++expert) {
      scores[expert] = std::exp(scores[expert] - largest);
      total += scores[expert];
    }
    float divisor = total;
    if (shape.normalise_top_k) {
      divisor = 0.0f;
      for (int64_t k = 0; k < shape.experts_per_token; ++k) divisor += scores[order[static_cast<size_t>(k)]];
    }
    for (int64_t k = 0; k < shape.experts_per_token; ++k) {
      const auto expert = static_cast<size_t>(order[static_cast<size_t>(k)]);
      expert_rows_[expert].push_back(static_cast<int32_t>(row));
      expert_weights_[expert].push_back(scores[expert] / divisor);
    }
  }
  std::fill_n(delta_.data(), rows * hidden, 0.0f);
  for (size_t expert = 0; expert < expert_rows_.size(); ++expert) {
    const std::vector<int32_t>& chosen = expert_rows_[expert];
    const auto count = static_cast<int64_t>(chosen.size());
    if (count == 0) continue;
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(normed_.data() + chosen[static_cast<size_t>(i)] * hidden, hidden, expert_in_.data() + i * hidden);
    }
    products.forward(gate_up_.data(), expert_in_.data(), *layer.expert_gate_up[expert], count);
    passes.swiglu(activated_.data(), gate_up_.data(), count, shape.intermediate);
    products.forward(expert_out_.data(), activated_.data(), *layer.expert_down[expert], count);
    for (int64_t i = 0; i < count; ++i) {
      float* to = delta_.data() + chosen[static_cast<size_t>(i)] * hidden;
      const float* from = expert_out_.data() + i * hidden;
      const float weight = expert_weights_[expert][static_cast<size_t>(i)];
      for (int64_t d = 0; d < hidden; ++d) to[d] += weight * from[d];
    }
  }
}

}  // namespace rollscope

// Lays out every tensor of a model by its Hugging Face name. The order decides only locality, never results.
#include "parameters.h"

namespace rollscope {

namespace {
constexpr int64_t kAlignment = 16;  // floats: one cache line
}

ParameterLayout::ParameterLayout(const ModelConfig& config) {
  slots_.reserve(static_cast<size_t>(config.layers * (16 + 3 * config.mixture.experts) + 8));
  layers_.resize(static_cast<size_t>(config.layers));
  const int64_t hidden = config.hidden;
  embedding_ = add("model.embed_tokens.weight", {config.vocabulary, hidden});
  for (int64_t index = 0; index < config.layers; index++) {
    LayerLayout& layer = layers_[static_cast<size_t>(index)];
    const std::string prefix = "model.layers." + std::to_string(index) + ".";
    const std::string attention = prefix + "self_attn.";
    align();
    layer.attention_norm = add(prefix + "input_layernorm.weight", {hidden});
    align();
    layer.qkv = add(attention + "q_proj.weight", {config.query_width(), hidden});
    add(attention + "k_proj.weight", {config.kv_width(), hidden});
    add(attention + "v_proj.weight", {config.kv_width(), hidden});
    if (config.attention_bias) {
      align();
      layer.qkv_bias = add(attention + "q_proj.bias", {config.query_width()});
      add(attention + "k_proj.bias", {config.kv_width()});
      add(attention + "v_proj.bias", {config.kv_width()});
    }
    if (config.query_key_norm) {
      align();
      layer.query_norm = add(attention + "q_norm.weight", {config.head_dim});
      align();
      layer.key_norm = add(attention + "k_norm.weight", {config.head_dim});
    }
    align();
    layer.output = add(attention + "o_proj.weight", {hidden, config.query_width()});
    if (config.output_bias) {
      align();
      layer.output_bias = add(attention + "o_proj.bias", {hidden});
    }
    align();
    layer.mlp_norm = add(prefix + "post_attention_layernorm.weight", {hidden});
    const bool mixture = config.mixture.experts > 0 && config.mixture.is_mixture[static_cast<size_t>(index)] != 0;
    if (!mixture) {
      align();
      layer.gate_up = add(prefix + "mlp.gate_proj.weight", {config.intermediate, hidden});
      add(prefix + "mlp.up_proj.weight", {config.intermediate, hidden});
      align();
      layer.down = add(prefix + "mlp.down_proj.weight", {hidden, config.intermediate});
      continue;
    }
    const int64_t width = config.mixture.intermediate;
    align();
    layer.router = add(prefix + "mlp.gate.weight", {config.mixture.experts, hidden});
    int64_t previous_gate_up = -1;
    int64_t previous_down = -1;
    for (int64_t expert = 0; expert < config.mixture.experts; expert++) {
      const std::string name = prefix + "mlp.experts." + std::to_string(expert) + ".";
      align();
      const int64_t gate_up = add(name + "gate_proj.weight", {width, hidden});
      add(name + "up_proj.weight", {width, hidden});
      align();
      const int64_t down = add(name + "down_proj.weight", {hidden, width});
      if (expert == 0) {
        layer.expert_gate_up = gate_up;
        layer.expert_down = down;
      } else {
        layer.expert_gate_up_stride = gate_up - previous_gate_up;
        layer.expert_down_stride = down - previous_down;
      }
      previous_gate_up = gate_up;
      previous_down = down;
    }
  }
  align();
  final_norm_ = add("model.norm.weight", {hidden});
  head_ = embedding_;
  if (!config.tied_head) {
    align();
    head_ = add("lm_head.weight", {config.vocabulary, hidden});
  }
  if (config.value_head) {
    align();
    value_weight_ = add("value_head.weight", {hidden});
    align();
    value_bias_ = add("value_head.bias", {1});
  }
  align();
  for (size_t index = 0; index < slots_.size(); index++) by_name_.emplace(slots_[index].name, index);
}

const TensorSlot* ParameterLayout::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &slots_[found->second];
}

int64_t ParameterLayout::add(std::string name, std::vector<int64_t> shape) {
  TensorSlot slot;
  slot.size = 1;
  for (const int64_t axis : shape) slot.size *= axis;
  slot.name = std::move(name);
  slot.is_matrix = shape.size() >= 2;
  slot.shape = std::move(shape);
  slot.offset = size_;
  size_ += slot.size;
  count_ += slot.size;
  slots_.push_back(std::move(slot));
  return slots_.back().offset;
}

void ParameterLayout::align() { size_ = (size_ + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace rollscope

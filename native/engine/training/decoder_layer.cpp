// The layer of decoder_layer.h: pre-norm attention with grouped heads, then a gated MLP or a mixture of experts.
#include "training/decoder_layer.h"

#include "training/mixture_layer.h"

namespace rollscope {

namespace {

const float* tensor(const float* arena, int64_t offset) { return offset < 0 ? nullptr : arena + offset; }
float* tensor(float* arena, int64_t offset) { return offset < 0 ? nullptr : arena + offset; }

void attention_backward(const LayerPass& pass, const LayerLayout& at, const LayerTape& tape, float* gradients) {
  const ModelConfig& config = pass.model.config();
  const Kernels& run = kernels();
  const LayerScratch& scratch = pass.scratch;
  const int64_t n = pass.tokens();
  const float* weights = pass.weights;
  if (at.output_bias >= 0) run.add_column_sums(gradients + at.output_bias, scratch.gradient, scratch.partial, n, config.hidden);
  pass.products.weight_gradient(gradients + at.output, scratch.gradient, tape.attention, n, config.hidden, config.query_width());
  pass.products.input_gradient(scratch.attention_gradient, scratch.gradient, weights + at.output, n, config.hidden, config.query_width());
  run.attention_backward(scratch.qkv_gradient, scratch.attention_gradient, tape.attention, tape.log_sums, tape.qkv, pass.plan.shape(),
                         pass.plan.attention(), scratch.attention_workspace, pass.products.threads());
  run.prepare_qkv_backward(scratch.qkv_gradient, tensor(gradients, at.qkv_bias), tensor(gradients, at.query_norm),
                           tensor(gradients, at.key_norm), tape.before_norm, tensor(weights, at.query_norm),
                           tensor(weights, at.key_norm), pass.cos_sin, pass.batch.positions.data(), scratch.partial, n, config.heads,
                           config.kv_heads, config.head_dim, config.rms_epsilon);
  run.rms_norm(scratch.normed, tape.input, weights + at.attention_norm, n, config.hidden, config.rms_epsilon);
  pass.products.weight_gradient(gradients + at.qkv, scratch.qkv_gradient, scratch.normed, n, config.qkv_width(), config.hidden);
  pass.products.input_gradient(scratch.delta, scratch.qkv_gradient, weights + at.qkv, n, config.qkv_width(), config.hidden);
  run.rms_norm_backward(scratch.gradient, gradients + at.attention_norm, scratch.delta, tape.input, weights + at.attention_norm,
                        scratch.partial, n, config.hidden, config.rms_epsilon);
}

void mlp_backward(const LayerPass& pass, const LayerLayout& at, const LayerTape& tape, float* gradients) {
  const ModelConfig& config = pass.model.config();
  const LayerScratch& scratch = pass.scratch;
  const int64_t n = pass.tokens();
  const int64_t hidden = config.hidden, width = config.intermediate;
  pass.products.input_gradient(scratch.wide, scratch.gradient, pass.weights + at.down, n, hidden, width);
  kernels().swiglu_backward(scratch.wide, tape.gate_up, n, width);
  pass.products.weight_gradient(gradients + at.down, scratch.gradient, scratch.wide, n, hidden, width);
  pass.products.weight_gradient(gradients + at.gate_up, tape.gate_up, scratch.normed, n, 2 * width, hidden);
  pass.products.input_gradient(scratch.delta, tape.gate_up, pass.weights + at.gate_up, n, 2 * width, hidden);
}

}  // namespace

void layer_norm_input(const LayerPass& pass, int64_t layer, const LayerTape& tape) {
  const ModelConfig& config = pass.model.config();
  const LayerLayout& at = pass.model.layout().layer(layer);
  kernels().rms_norm(pass.scratch.normed, tape.input, pass.weights + at.attention_norm, pass.tokens(), config.hidden, config.rms_epsilon);
}

void layer_forward(const LayerPass& pass, int64_t layer, const LayerTape& tape, bool output) {
  const ModelConfig& config = pass.model.config();
  const LayerLayout& at = pass.model.layout().layer(layer);
  const Kernels& run = kernels();
  const LayerScratch& scratch = pass.scratch;
  const float* weights = pass.weights;
  const int64_t n = pass.tokens();
  const int64_t hidden = config.hidden;
  pass.products.forward(tape.qkv, scratch.normed, weights + at.qkv, n, config.qkv_width(), hidden);
  run.prepare_qkv(tape.qkv, tape.before_norm, tensor(weights, at.qkv_bias), tensor(weights, at.query_norm), tensor(weights, at.key_norm),
                  pass.cos_sin, pass.batch.positions.data(), n, config.heads, config.kv_heads, config.head_dim, config.rms_epsilon);
  run.attention_forward(tape.attention, tape.log_sums, tape.qkv, pass.plan.shape(), pass.plan.attention(), scratch.attention_workspace,
                        pass.products.threads());
  pass.products.forward(scratch.delta, tape.attention, weights + at.output, n, hidden, config.query_width());
  if (at.output_bias >= 0) run.add_bias(scratch.delta, weights + at.output_bias, n, hidden);
  run.add_rms_norm(tape.middle, scratch.normed, tape.input, scratch.delta, weights + at.mlp_norm, n, hidden, config.rms_epsilon);
  if (at.router >= 0) {
    mixture_forward(pass, layer, tape, output);
    return;
  }
  pass.products.forward(tape.gate_up, scratch.normed, weights + at.gate_up, n, 2 * config.intermediate, hidden);
  if (!output) return;
  run.swiglu(scratch.wide, tape.gate_up, n, config.intermediate);
  pass.products.forward(scratch.delta, scratch.wide, weights + at.down, n, hidden, config.intermediate);
}

void layer_backward(const LayerPass& pass, int64_t layer, const LayerTape& tape, float* gradients) {
  const ModelConfig& config = pass.model.config();
  const LayerLayout& at = pass.model.layout().layer(layer);
  const LayerScratch& scratch = pass.scratch;
  const int64_t n = pass.tokens();
  kernels().rms_norm(scratch.normed, tape.middle, pass.weights + at.mlp_norm, n, config.hidden, config.rms_epsilon);
  if (at.router >= 0) {
    mixture_backward(pass, layer, tape, gradients);
  } else {
    mlp_backward(pass, at, tape, gradients);
  }
  kernels().rms_norm_backward(scratch.gradient, gradients + at.mlp_norm, scratch.delta, tape.middle, pass.weights + at.mlp_norm,
                              scratch.partial, n, config.hidden, config.rms_epsilon);
  attention_backward(pass, at, tape, gradients);
}

}  // namespace rollscope

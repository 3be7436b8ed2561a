// Passes over the layers, gradient accumulation and AdamW; see trainer.h.
#include "training/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "engine_error.h"
#include "kernels.h"
#include "training/decoder_layer.h"

namespace rollscope {

namespace {

constexpr int64_t kMostTokens = 1 << 20;
constexpr auto kFloat = static_cast<int64_t>(sizeof(float));

std::string mebibytes(int64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB"; }

void embed(float* to, const float* embedding, const std::vector<int32_t>& tokens, int64_t hidden) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < static_cast<int64_t>(tokens.size()); i++)
    std::memcpy(to + i * hidden, embedding + tokens[static_cast<size_t>(i)] * hidden, static_cast<size_t>(hidden) * sizeof(float));
}

/// Adds each token's gradient to its row; columns are split over the threads, so no two write the same place.
void embed_backward(float* embedding_gradient, const float* gradient, const std::vector<int32_t>& tokens, int64_t hidden) {
  constexpr int64_t kColumns = 64;
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < hidden; first += kColumns) {
    const int64_t last = std::min(first + kColumns, hidden);
    for (size_t i = 0; i < tokens.size(); i++) {
      float* to = embedding_gradient + tokens[i] * hidden;
      const float* from = gradient + static_cast<int64_t>(i) * hidden;
      for (int64_t column = first; column < last; column++) to[column] += from[column];
    }
  }
}

void check_cotangents(const std::vector<float>& values, const std::vector<float>& scalars, size_t tokens, const char* what) {
  if (values.empty()) return;
  if (values.size() != tokens || scalars.empty()) {
    throw EngineError("ENGINE_REQUEST_INVALID", std::string("The cotangents of ") + what + " fit no output that was asked for.",
                      "Return one number per token, only for outputs named in `want`.");
  }
  for (size_t i = 0; i < tokens; i++) {
    if (!std::isfinite(values[i])) {
      throw EngineError("ENGINE_NON_FINITE", std::string("The cotangent of ") + what + " at token " + std::to_string(i) + " is not a finite number.",
                        "Look at the objective's inputs for this token.");
    }
    if (values[i] != 0.0f && std::isnan(scalars[i])) {
      throw EngineError("ENGINE_REQUEST_INVALID", "Token " + std::to_string(i) + " has a cotangent of " + what + " but no output.",
                        "Mark the token as wanted, or give it the cotangent 0.");
    }
  }
}

}  // namespace

/// A batch between its forward and its backward pass.
struct Trainer::Pending {
  Batch batch;
  ForestPlan plan;
  Scalars scalars;
  int64_t checkpointed = 0;

  Pending(Batch from, const ModelConfig& config) : batch(std::move(from)), plan(batch, config) {}
};

Trainer::Trainer(std::shared_ptr<Model> model, TrainerLimits limits)
    : model_(std::move(model)), limits_(limits), activations_(model_->config()) {}

Trainer::~Trainer() = default;

bool Trainer::fits(MemoryPlan& plan, int64_t tokens, int64_t padded_keys, int64_t head_rows, int threads, bool gradient) const {
  const ModelConfig& config = model_->config();
  const ActivationSizes sizes(config, tokens, padded_keys, threads);
  const int64_t room = limits_.memory_bytes - plan.fixed_bytes;
  plan.checkpointed_layers = 0;
  plan.keeps_logits = false;
  if (!gradient) {
    plan.activation_bytes = (sizes.layer_input + sizes.layer_rest + sizes.scratch_forward + head_floats(config, head_rows, false, false)) * kFloat;
    return plan.activation_bytes <= room;
  }
  const auto total = [&](int64_t checkpointed, bool keeps_logits) {
    const int64_t retained = config.layers - checkpointed;
    return (config.layers * sizes.layer_input + (retained + (checkpointed > 0 ? 1 : 0)) * sizes.layer_rest + sizes.scratch_backward +
            head_floats(config, head_rows, keeps_logits, true)) *
           kFloat;
  };
  // Recomputing logits costs less than recomputing layers, so they go first.
  for (const bool keeps_logits : {true, false}) {
    if (keeps_logits && head_rows * config.vocabulary * kFloat > limits_.kept_logits_bytes) continue;
    plan.keeps_logits = keeps_logits;
    plan.activation_bytes = total(0, keeps_logits);
    if (plan.activation_bytes <= room) return true;
  }
  for (plan.checkpointed_layers = 2; plan.checkpointed_layers < config.layers; plan.checkpointed_layers++) {
    plan.activation_bytes = total(plan.checkpointed_layers, false);
    if (plan.activation_bytes <= room) return true;
  }
  plan.checkpointed_layers = config.layers;
  plan.activation_bytes = total(config.layers, false);
  return plan.activation_bytes <= room;
}

MemoryPlan Trainer::plan(int64_t tokens, int64_t padded_keys, int64_t head_rows, int threads, bool gradient) const {
  MemoryPlan plan{};
  const int64_t arenas = 1 + model_->snapshot_count() + (gradient || !gradient_.empty() ? 3 : 0);
  plan.fixed_bytes = model_->layout().size() * kFloat * arenas;
  if (fits(plan, tokens, padded_keys, head_rows, threads, gradient)) return plan;
  throw EngineError("ENGINE_OUT_OF_MEMORY",
                    "A batch of " + std::to_string(tokens) + " tokens needs " + mebibytes(plan.activation_bytes) + " beside " +
                        mebibytes(plan.fixed_bytes) + " for weights, gradient and moments; the limit is " + mebibytes(limits_.memory_bytes) + ".",
                    "Lower training.tokenBudget, raise the memory limit, or use a smaller model.");
}

int64_t Trainer::max_tokens(int threads) const {
  int64_t low = 0, high = kMostTokens;
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    MemoryPlan plan{};
    plan.fixed_bytes = model_->layout().size() * kFloat * 5;
    // Short nodes pad their keys; four keys a token is what real forests stay below.
    if (fits(plan, middle, 4 * middle, middle, threads, true)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

void Trainer::run_layers(const LayerPass& pass, const CancelToken& cancel, bool keep, RecordedRouting* routing) {
  const ModelConfig& config = model_->config();
  const int64_t n = pass.tokens();
  const auto tape_of = [&](int64_t layer) -> const LayerTape& { return keep ? activations_.kept(layer) : activations_.passing(); };
  embed(tape_of(0).input, pass.weights + model_->layout().embedding(), pass.batch.tokens, config.hidden);
  layer_norm_input(pass, 0, tape_of(0));
  if (routing != nullptr) {
    const auto size = static_cast<size_t>(config.layers * n * config.mixture.experts_per_token);
    routing->experts.assign(size, -1);
    routing->weights.assign(size, 0.0f);
  }
  for (int64_t layer = 0; layer < config.layers; layer++) {
    cancel.throw_if_raised();
    const LayerTape& tape = tape_of(layer);
    layer_forward(pass, layer, tape, true);
    if (routing != nullptr && model_->layout().layer(layer).router >= 0) {
      const int64_t count = n * config.mixture.experts_per_token;
      for (int64_t i = 0; i < count; i++) {
        routing->experts[static_cast<size_t>(layer * count + i)] = static_cast<int16_t>(tape.experts[i]);
        routing->weights[static_cast<size_t>(layer * count + i)] = tape.mix[i];
      }
    }
    if (layer + 1 == config.layers) return;
    const int64_t norm = model_->layout().layer(layer + 1).attention_norm;
    kernels().add_rms_norm(tape_of(layer + 1).input, pass.scratch.normed, tape.middle, pass.scratch.delta, pass.weights + norm, n,
                           config.hidden, config.rms_epsilon);
  }
}

Scalars Trainer::forward(MatrixProducts& products, const Batch& batch, const Outputs& want, const float* weights, const CancelToken& cancel,
                         RecordedRouting* routing) {
  const ForestPlan forest(batch, model_->config());
  const int threads = products.threads();
  plan(batch.size(), forest.attention().padded_keys, static_cast<int64_t>(forest.rows().size()), threads, false);
  activations_.prepare_forward(batch.size(), forest.attention().padded_keys, threads);
  const float* angles = model_->rope().table(forest.largest_position() + 1);
  const LayerPass pass{products, *model_, weights, batch, forest, angles, activations_.scratch()};
  run_layers(pass, cancel, false, routing);
  const HeadPass head{products, *model_, weights, batch, forest, cancel};
  return head_forward(head, passing_head_, activations_.passing().middle, activations_.scratch().delta, want, false);
}

Scalars Trainer::forward_for_gradient(MatrixProducts& products, Batch batch, const Outputs& want, const CancelToken& cancel) {
  pending_.reset();
  auto pending = std::make_unique<Pending>(std::move(batch), model_->config());
  const int threads = products.threads();
  const int64_t n = pending->batch.size();
  const int64_t padded_keys = pending->plan.attention().padded_keys;
  const MemoryPlan memory = plan(n, padded_keys, static_cast<int64_t>(pending->plan.rows().size()), threads, true);
  pending->checkpointed = memory.checkpointed_layers;
  activations_.prepare_gradient(n, padded_keys, threads, memory.checkpointed_layers);
  const float* angles = model_->rope().table(pending->plan.largest_position() + 1);
  const LayerPass pass{products, *model_, model_->weights(), pending->batch, pending->plan, angles, activations_.scratch()};
  run_layers(pass, cancel, true, nullptr);
  const HeadPass head{products, *model_, model_->weights(), pending->batch, pending->plan, cancel};
  const LayerTape& last = activations_.kept(model_->config().layers - 1);
  pending->scalars = head_forward(head, kept_head_, last.middle, activations_.scratch().delta, want, memory.keeps_logits);
  pending_ = std::move(pending);
  return pending_->scalars;
}

void Trainer::backward(MatrixProducts& products, const Cotangents& cotangents, const CancelToken& cancel) {
  if (pending_ == nullptr) {
    throw EngineError("ENGINE_REQUEST_INVALID", "There is no forward pass to go back through.", "Run the batch forward first.");
  }
  const std::unique_ptr<Pending> pending = std::move(pending_);
  const size_t tokens = pending->batch.tokens.size();
  check_cotangents(cotangents.logprob, pending->scalars.logprob, tokens, "logprob");
  check_cotangents(cotangents.entropy, pending->scalars.entropy, tokens, "entropy");
  check_cotangents(cotangents.value, pending->scalars.value, tokens, "value");
  if (gradient_.empty()) gradient_.resize(model_->layout().size());
  const int threads = products.threads();
  // A forward pass may have used the scratch since; its buffers are placed anew, the tape is untouched.
  activations_.prepare_gradient(pending->batch.size(), pending->plan.attention().padded_keys, threads, pending->checkpointed);
  const float* angles = model_->rope().table(pending->plan.largest_position() + 1);
  const LayerPass pass{products, *model_, model_->weights(), pending->batch, pending->plan, angles, activations_.scratch()};
  const HeadPass head{products, *model_, model_->weights(), pending->batch, pending->plan, cancel};
  head_backward(head, kept_head_, cotangents, activations_.scratch().gradient, gradient_.data());
  for (int64_t layer = model_->config().layers; layer-- > 0;) {
    cancel.throw_if_raised();
    const LayerTape& tape = activations_.kept(layer);
    if (layer < pending->checkpointed) {
      layer_norm_input(pass, layer, tape);
      layer_forward(pass, layer, tape, false);
    }
    layer_backward(pass, layer, tape, gradient_.data());
  }
  embed_backward(gradient_.data() + model_->layout().embedding(), activations_.scratch().gradient, pending->batch.tokens, model_->config().hidden);
}

GradientNorm Trainer::gradient_norm() {
  if (gradient_.empty()) return {0.0, true};
  partial_.reserve((gradient_.size() + 65535) / 65536);
  const double norm = std::sqrt(kernels().sum_of_squares(gradient_.data(), partial_.data(), gradient_.size()));
  return {norm, std::isfinite(norm)};
}

int64_t Trainer::step(const StepOptions& options) {
  const GradientNorm gradient = gradient_norm();
  if (!gradient.finite) {
    throw EngineError("ENGINE_NON_FINITE", "The accumulated gradient is not finite; the weights were left as they are.",
                      "Discard it, and lower the learning rate or look at the step's advantages.");
  }
  if (gradient_.empty()) gradient_.resize(model_->layout().size());
  if (first_.empty()) first_.resize(model_->layout().size());
  if (second_.empty()) second_.resize(model_->layout().size());
  pending_.reset();
  const auto t = static_cast<double>(++optimizer_steps_);
  AdamwNumbers numbers;
  numbers.clip = static_cast<float>(std::min(1.0, options.max_gradient_norm / (gradient.norm + 1e-6)));
  numbers.beta1 = static_cast<float>(options.beta1);
  numbers.beta2 = static_cast<float>(options.beta2);
  numbers.one_minus_beta1 = static_cast<float>(1.0 - options.beta1);
  numbers.one_minus_beta2 = static_cast<float>(1.0 - options.beta2);
  numbers.rate = static_cast<float>(options.learning_rate / (1.0 - std::pow(options.beta1, t)));
  numbers.second_scale = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(options.beta2, t)));
  numbers.epsilon = static_cast<float>(options.epsilon);
  AdamwNumbers decaying = numbers;
  decaying.keep = static_cast<float>(1.0 - options.learning_rate * options.weight_decay);
  float* weights = model_->mutable_weights();
  for (const TensorSlot& slot : model_->layout().slots()) {
    const AdamwNumbers& chosen = options.decay_all || slot.is_matrix ? decaying : numbers;
    kernels().adamw(weights + slot.offset, gradient_.data() + slot.offset, first_.data() + slot.offset, second_.data() + slot.offset, slot.size,
                    chosen);
  }
  const int64_t version = model_->version() + 1;
  model_->weights_changed(version);
  return version;
}

void Trainer::discard() {
  pending_.reset();
  if (!gradient_.empty()) gradient_.clear();
}

Arena& Trainer::reset_first_moment() {
  first_.resize(model_->layout().size());
  return first_;
}

Arena& Trainer::reset_second_moment() {
  second_.resize(model_->layout().size());
  return second_;
}

void Trainer::clear_moments() {
  first_.resize(0);
  second_.resize(0);
  optimizer_steps_ = 0;
}

}  // namespace rollscope

// Forward, backward and optimizer of one model. Everything runs on the compute thread; a gradient pass is two calls with the
// caller's cotangents between them. It must never know what the cotangents mean.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "adamw.h"
#include "cancel_token.h"
#include "matrix_products.h"
#include "model.h"
#include "training/activations.h"
#include "training/forest_plan.h"
#include "training/output_head.h"

namespace rollscope {

struct LayerPass;

struct TrainerLimits {
  int64_t memory_bytes;       // for weights, gradient, moments, snapshots and activations together
  int64_t kept_logits_bytes;  // logits of one batch kept from forward to backward, at most
};

struct StepOptions {
  double learning_rate;
  double beta1;
  double beta2;
  double epsilon;
  double weight_decay;
  bool decay_all;
  double max_gradient_norm;  // infinity: no clipping
};

struct GradientNorm {
  double norm;
  bool finite;
};

/// What a batch will take, before it runs.
struct MemoryPlan {
  int64_t fixed_bytes;       // weights, gradient, moments, snapshots
  int64_t activation_bytes;
  int64_t checkpointed_layers;
  bool keeps_logits;
};

/// Experts chosen in a pass, [layers][n][k]; dense layers hold −1 and 0.
struct RecordedRouting {
  std::vector<int16_t> experts;
  std::vector<float> weights;
};

class Trainer {
 public:
  Trainer(std::shared_ptr<Model> model, TrainerLimits limits);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  const std::shared_ptr<Model>& model() const { return model_; }

  /// Keeps nothing. `weights` is an arena of the model's layout. `routing` (or nullptr) receives the experts of mixture layers.
  Scalars forward(MatrixProducts& products, const Batch& batch, const Outputs& want, const float* weights, const CancelToken& cancel,
                  RecordedRouting* routing);
  /// Keeps what backward() needs; a second call replaces it.
  Scalars forward_for_gradient(MatrixProducts& products, Batch batch, const Outputs& want, const CancelToken& cancel);
  /// Adds the gradient of Σ c · scalar over the batch of the last forward_for_gradient. Throws ENGINE_REQUEST_INVALID without one.
  void backward(MatrixProducts& products, const Cotangents& cotangents, const CancelToken& cancel);

  GradientNorm gradient_norm();
  /// Returns the new version. Throws ENGINE_NON_FINITE when the gradient is not finite; the weights stay as they were.
  int64_t step(const StepOptions& options);
  void discard();

  /// Largest batch that fits with every layer checkpointed beside weights, gradient, moments and one snapshot; 0 when none does.
  /// Depends on nothing that changes, so any thread may ask.
  int64_t max_tokens(int threads) const;
  /// Throws ENGINE_OUT_OF_MEMORY with numbers when nothing fits.
  MemoryPlan plan(int64_t tokens, int64_t padded_keys, int64_t head_rows, int threads, bool gradient) const;

  /// Empty arenas where nothing was accumulated or stepped yet.
  const Arena& gradient() const { return gradient_; }
  const Arena& first_moment() const { return first_; }
  const Arena& second_moment() const { return second_; }
  /// Fresh moments for load; they take effect when filled.
  Arena& reset_first_moment();
  Arena& reset_second_moment();
  void clear_moments();
  int64_t optimizer_steps() const { return optimizer_steps_; }
  void set_optimizer_steps(int64_t steps) { optimizer_steps_ = steps; }

 private:
  struct Pending;

  bool fits(MemoryPlan& plan, int64_t tokens, int64_t padded_keys, int64_t head_rows, int threads, bool gradient) const;
  void run_layers(const LayerPass& pass, const CancelToken& cancel, bool keep, RecordedRouting* routing);

  const std::shared_ptr<Model> model_;
  const TrainerLimits limits_;
  Activations activations_;
  HeadTape passing_head_, kept_head_;
  std::unique_ptr<Pending> pending_;
  Arena gradient_, first_, second_;
  AlignedBuffer<double> partial_;
  int64_t optimizer_steps_ = 0;

};

}  // namespace rollscope

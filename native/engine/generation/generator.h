// Continuous batching: requests join and leave between iterations; one iteration computes rows of many of them and samples.
// Everything runs on the compute thread. It never waits: whoever calls decides when the next iteration is due.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine_error.h"
#include "generation/generation_request.h"
#include "generation/inference_model.h"
#include "generation/inference_weights.h"
#include "generation/scheduler.h"
#include "generation/stop_matcher.h"
#include "generation/token_sampler.h"
#include "matrix_products.h"
#include "model.h"

namespace rollscope {

struct GeneratorOptions {
  int64_t cache_bytes = int64_t{1} << 30;
  SchedulerLimits limits;
};

/// An EngineError for what no part of the engine foresaw.
EngineError unexpected(const std::exception& failure);

enum class PauseMode { wait, hold, abort };

struct GeneratorHealth {
  int64_t running = 0;
  int64_t queued = 0;
  int64_t version = 0;
  int64_t cached_tokens = 0;
  int64_t cache_blocks = 0;      // in use
  int64_t cache_capacity = 0;    // blocks
  bool is_paused = false;
  bool is_released = false;
  SchedulerCounts counts;
};

class Generator {
 public:
  Generator(Model& model, const GeneratorOptions& options, TokenBytes token_bytes);

  /// A request that cannot be served yields one event with finish `error`.
  void submit(int64_t id, GenerationRequest request);
  /// Ends the request with what it has; nothing happens when it has ended.
  void abort(int64_t id);

  /// wait: what has started goes on, nothing new starts. hold: nothing goes on. abort: all requests end.
  void pause(PauseMode mode);
  void resume() { pause_ = Pause::none; }
  /// Nothing that the pause lets go on is left.
  bool has_settled() const;

  /// Whether an iteration would compute something.
  bool has_work() const;
  void iterate(MatrixProducts& products);
  /// What happened since the last call.
  std::vector<GenerationEvent> take_events();

  /// Copies the model's weights when they changed, drops the prefix cache of the old ones; what runs goes on under the new
  /// weights after computing its keys and values again. Returns the version now served.
  int64_t update_weights(MatrixProducts& products);
  /// Frees packed weights, cache and activations; requests wait until `restore_memory`.
  void release_memory();
  void restore_memory(MatrixProducts& products);

  GeneratorHealth health() const;

 private:
  enum class Pause { none, wait, hold };
  /// Who reads which row of logits.
  struct Reader {
    Sequence* sequence;
    int64_t row;       // index among the wanted rows
    int32_t target;    // token to score, −1: sample
  };
  struct Reading {
    SampledToken sampled;
    ScoredToken scored;
    std::vector<int32_t> alternative_ids;
    std::vector<float> alternative_logprobs;
  };

  void gather(const IterationPlan& plan);
  void read_logits(MatrixProducts& products);
  void read_row(const Reader& reader, const float* logits, Reading& reading, TokenSampler& sampler) const;
  void accept(const Reader& reader, Reading& reading);
  void accept_token(Sequence& sequence, Reading& reading);
  void end(Sequence* sequence, GenerationEvent event, Finish finish);
  void fail(Sequence* sequence, const EngineError& error);
  void fail_all(const EngineError& error);
  GenerationEvent event_of(Sequence& sequence) const;

  Model& model_;
  TokenBytes token_bytes_;
  InferenceWeights weights_;
  InferenceModel inference_;
  Scheduler scheduler_;
  RequestLimits request_limits_;
  int64_t stamp_ = 0;  // Model::stamp() of the weights taken
  Pause pause_ = Pause::none;
  bool is_released_ = false;
  InferenceRows rows_;
  std::vector<Reader> readers_;
  std::vector<Reading> readings_;
  std::vector<TokenSampler> samplers_;
  std::vector<GenerationEvent> events_;
};

}  // namespace rollscope

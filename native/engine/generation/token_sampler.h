// Turns one row of logits into one token with its numbers, or into the numbers of a given token. Owns scratch memory, so
// each thread has its own. It never keeps state between rows: the same row and key give the same token.
#pragma once

#include <cstdint>
#include <vector>

#include "generation/generation_request.h"

namespace rollscope {

struct SampledToken {
  int32_t id = -1;
  float logprob = 0.0f;          // log-softmax(logits / T) before truncation; at T = 0 that of T = 1
  float sampled_logprob = 0.0f;  // after truncation
  bool is_finite = true;         // false: the logits hold NaN or infinity and nothing else is set
};

struct ScoredToken {
  float logprob = 0.0f;
  float entropy = 0.0f;
  bool is_finite = true;
};

class TokenSampler {
 public:
  explicit TokenSampler(int64_t vocabulary);

  /// `position` is the token's index in the sequence; it names the random number. `forced` ≥ 0 takes that id instead.
  SampledToken sample(const float* logits, const GenerationRequest& request, int64_t position, int32_t forced);

  /// The `count` most probable ids (lower id first among equals) with their log-softmax(logits / T).
  void alternatives(const float* logits, float temperature, int32_t count, std::vector<int32_t>& ids, std::vector<float>& logprobs);

  /// Entropy is −Σ p log p over the vocabulary in nats. T = 0 is read as 1.
  ScoredToken score(const float* logits, int32_t token, float temperature);

 private:
  /// log-softmax(logits / T) of any id: (logit − maximum) / T − log_total.
  struct Normaliser {
    float maximum = 0.0f;
    float inverse_temperature = 1.0f;
    double total = 0.0;
    double log_total = 0.0;
    float logprob(float logit) const;
  };

  Normaliser normalise(const float* logits, float temperature);
  int32_t draw(const float* logits, const Normaliser& normaliser, double uniform);
  int32_t draw_truncated(const float* logits, const Normaliser& normaliser, const GenerationRequest& request, double uniform,
                         float& sampled_logprob);
  /// Ids in order of falling logit, at least those with (logit − maximum) / T ≥ level.
  void sort_candidates(const float* logits, const Normaliser& normaliser, float level);

  int64_t vocabulary_;
  std::vector<float> block_sums_, block_moments_;
  std::vector<int32_t> candidates_;
  std::vector<float> candidate_logits_, candidate_exponentials_;
};

}  // namespace rollscope

// What a caller asks of generation and what comes back, per request and per iteration. Plain data; validated by
// `check_request` before anything else sees it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "counter_random.h"

namespace rollscope {

struct GenerationRequest {
  std::vector<int32_t> prompt;
  int64_t max_new_tokens = 0;
  float temperature = 1.0f;  // 0: argmax
  float top_p = 1.0f;        // 1: off
  int32_t top_k = 0;         // 0: off
  float min_p = 0.0f;        // 0: off
  std::vector<int32_t> stop_ids;
  std::vector<std::string> stop_strings;  // bytes
  SamplingKey key;
  bool is_forced = false;        // scripted mode: emit `forced` instead of sampled ids
  std::vector<int32_t> forced;
  int32_t top_alternatives = 0;
  /// −1: generate. Otherwise no token is generated; tokens [score_from, n) of the prompt are scored.
  int64_t score_from = -1;

  bool is_score() const { return score_from >= 0; }
  bool truncates(int64_t vocabulary) const {
    return temperature > 0.0f && (top_p < 1.0f || (top_k > 0 && top_k < vocabulary) || min_p > 0.0f);
  }
};

enum class Finish : int32_t { none = -1, stop = 0, length = 1, abort = 2, error = 3 };

/// Why generation ended, beside the reason: the stop id, or the index of the stop string; −1 when neither.
struct StopCause {
  int32_t id = -1;
  int32_t string_index = -1;
};

/// What one iteration gave one request; at most one token each, so arrays of a whole iteration are cheap to hand over.
struct GenerationEvent {
  int64_t request = 0;
  int32_t token = -1;  // −1: no token, only a finish
  float logprob = 0.0f;
  float sampled_logprob = 0.0f;
  int32_t version = 0;
  int32_t cached_tokens = -1;  // ≥ 0 on the first event of a request
  bool is_truncated = false;   // sampled_logprob means something
  Finish finish = Finish::none;
  StopCause cause;
  std::vector<int32_t> alternative_ids;
  std::vector<float> alternative_logprobs;
  // Scores: filled on the finishing event of a score request. [n − score_from]
  std::vector<float> score_logprobs;
  std::vector<float> score_entropies;
  // Filled when finish is `error`.
  std::string error_code, error_sentence, error_next;
};

/// Limits that decide whether a request can be served at all.
struct RequestLimits {
  int64_t vocabulary = 0;
  int64_t max_positions = 0;
  int64_t cache_positions = 0;  // positions that fit the whole key/value cache
  bool has_token_bytes = false;
};

/// Throws EngineError ENGINE_REQUEST_INVALID or ENGINE_CACHE_TOO_SMALL (with numbers); lowers max_new_tokens to what the
/// model's positions allow.
void check_request(GenerationRequest& request, const RequestLimits& limits);

}  // namespace rollscope

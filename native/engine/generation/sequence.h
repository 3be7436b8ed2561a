// One request on its way: its tokens, how much of it is computed, and the cache blocks that hold it.
#pragma once

#include <cstdint>
#include <vector>

#include "generation/generation_request.h"
#include "generation/prefix_tree.h"
#include "generation/stop_matcher.h"

namespace rollscope {

struct Sequence {
  int64_t id = 0;
  GenerationRequest request;
  StopMatcher stops;
  std::vector<int32_t> tokens;  // prompt, then what was generated
  int64_t computed = 0;         // positions [0, computed) have keys and values, those of the planned iteration included
  std::vector<int32_t> blocks;  // one reference each
  PrefixTree::Node* node = nullptr;  // pinned; the tree's path to it is blocks [0, registered)
  int64_t registered = 0;
  int64_t cached_tokens = -1;   // prompt tokens that needed no computing when it first ran; −1 before
  bool is_announced = false;    // an event with cached_tokens is out
  std::vector<float> score_logprobs, score_entropies;

  int64_t prompt_length() const { return static_cast<int64_t>(request.prompt.size()); }
  int64_t generated() const { return static_cast<int64_t>(tokens.size()) - prompt_length(); }
  /// Positions to compute before the next token can be sampled, or before a score is whole.
  int64_t goal() const { return static_cast<int64_t>(tokens.size()) - (request.is_score() ? 1 : 0); }
  int64_t pending() const { return goal() - computed; }
  /// Positions that may come from the cache: what is left must yield logits.
  int64_t cacheable() const { return request.is_score() ? next_scored() - 1 : goal() - 1; }
  /// Index of the first token without a score; a score that was interrupted goes on from there.
  int64_t next_scored() const { return request.score_from + static_cast<int64_t>(score_logprobs.size()); }
  bool has_started() const { return cached_tokens >= 0; }
};

}  // namespace rollscope

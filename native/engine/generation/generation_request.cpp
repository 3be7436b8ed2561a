// Checks a request once at the border, so that the scheduler can trust it.
#include "generation/generation_request.h"

#include <algorithm>
#include <cmath>

#include "engine_error.h"

namespace rollscope {

namespace {

[[noreturn]] void refuse(const std::string& sentence, const std::string& next) {
  throw EngineError("ENGINE_REQUEST_INVALID", sentence, next);
}

void check_ids(const std::vector<int32_t>& ids, const char* name, int64_t vocabulary) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocabulary) {
      refuse(std::string("The ") + name + " holds id " + std::to_string(ids[i]) + " at index " + std::to_string(i) +
                 "; the model's vocabulary has " + std::to_string(vocabulary) + " ids.",
             "Check that tokenizer and model belong together.");
    }
  }
}

}  // namespace

void check_request(GenerationRequest& request, const RequestLimits& limits) {
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  if (prompt == 0) refuse("The prompt is empty.", "Send at least one token, such as the beginning-of-text id.");
  check_ids(request.prompt, "prompt", limits.vocabulary);
  if (!std::isfinite(request.temperature) || request.temperature < 0.0f) {
    refuse("The temperature is " + std::to_string(request.temperature) + ".", "Use a finite temperature of 0 or more.");
  }
  if (request.is_score()) {
    if (prompt > limits.max_positions) {
      refuse("The text to score has " + std::to_string(prompt) + " tokens; the model has " + std::to_string(limits.max_positions) +
                 " positions.",
             "Shorten it or use a model with more positions.");
    }
    if (request.score_from < 1 || request.score_from > prompt) {
      refuse("Scoring starts at index " + std::to_string(request.score_from) + " of " + std::to_string(prompt) + " tokens.",
             "Start at 1 or later: nothing predicts the first token.");
    }
  } else {
    if (request.max_new_tokens < 1) refuse("maxNewTokens is " + std::to_string(request.max_new_tokens) + ".", "Ask for at least 1 token.");
    if (prompt >= limits.max_positions) {
      refuse("The prompt has " + std::to_string(prompt) + " tokens; the model has " + std::to_string(limits.max_positions) +
                 " positions, and at least one must be left for the answer.",
             "Shorten the prompt or use a model with more positions.");
    }
    if (!(request.top_p > 0.0f && request.top_p <= 1.0f)) refuse("topP is " + std::to_string(request.top_p) + ".", "Use a value in (0, 1]; 1 is off.");
    if (!(request.min_p >= 0.0f && request.min_p <= 1.0f)) refuse("minP is " + std::to_string(request.min_p) + ".", "Use a value in [0, 1]; 0 is off.");
    if (request.top_k < 0) refuse("topK is " + std::to_string(request.top_k) + ".", "Use 0 (off) or a positive number.");
    if (request.top_alternatives < 0 || request.top_alternatives > limits.vocabulary) {
      refuse("topAlternatives is " + std::to_string(request.top_alternatives) + ".",
             "Use a number from 0 to the vocabulary size, " + std::to_string(limits.vocabulary) + ".");
    }
    check_ids(request.stop_ids, "list of stop ids", limits.vocabulary);
    check_ids(request.forced, "script", limits.vocabulary);
    if (request.is_forced && request.forced.empty()) refuse("The script of forced ids is empty.", "Give at least one id.");
    for (const std::string& text : request.stop_strings) {
      if (text.empty()) refuse("A stop string is empty.", "Leave it out: it would end every answer at once.");
    }
    if (!request.stop_strings.empty() && !limits.has_token_bytes) {
      refuse("Stop strings were asked of an engine that does not know its tokens' bytes.",
             "Construct the engine with the tokenizer's byte table, or stop by ids.");
    }
    request.max_new_tokens = std::min(request.max_new_tokens, limits.max_positions - prompt);
  }
  const int64_t positions = prompt + (request.is_score() ? 0 : request.max_new_tokens);
  if (positions > limits.cache_positions) {
    throw EngineError("ENGINE_CACHE_TOO_SMALL",
                      "The request needs a key/value cache of " + std::to_string(positions) + " positions (prompt " + std::to_string(prompt) +
                          ", new tokens " + std::to_string(positions - prompt) + "); the whole cache holds " +
                          std::to_string(limits.cache_positions) + ".",
                      "Raise the engine's cache limit, or lower maxNewTokens.");
  }
}

}  // namespace rollscope

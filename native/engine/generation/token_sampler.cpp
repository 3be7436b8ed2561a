// Sampling by the inverse of the cumulative distribution, over all ids or over those that truncation keeps.
#include "generation/token_sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "generation/generation_kernels.h"

namespace rollscope {

namespace {

/// Candidates are gathered down to these exponents, one level after the other, until they are enough: sorting the whole
/// vocabulary is the last resort.
constexpr std::array<float, 4> candidate_levels = {-5.0f, -12.0f, -24.0f, -std::numeric_limits<float>::infinity()};

}  // namespace

TokenSampler::TokenSampler(int64_t vocabulary)
    : vocabulary_(vocabulary),
      block_sums_(static_cast<size_t>(logit_blocks(vocabulary))),
      block_moments_(static_cast<size_t>(logit_blocks(vocabulary))) {}

float TokenSampler::Normaliser::logprob(float logit) const {
  return static_cast<float>((static_cast<double>(logit) - maximum) * inverse_temperature - log_total);
}

TokenSampler::Normaliser TokenSampler::normalise(const float* logits, float temperature) {
  Normaliser normaliser;
  normaliser.maximum = generation_kernels().largest_logit(logits, vocabulary_);
  normaliser.inverse_temperature = temperature > 0.0f ? 1.0f / temperature : 1.0f;
  generation_kernels().exponential_sums(logits, vocabulary_, normaliser.maximum, normaliser.inverse_temperature, block_sums_.data());
  for (const float sum : block_sums_) normaliser.total += sum;
  normaliser.log_total = std::log(normaliser.total);
  return normaliser;
}

SampledToken TokenSampler::sample(const float* logits, const GenerationRequest& request, int64_t position, int32_t forced) {
  const Normaliser normaliser = normalise(logits, request.temperature);
  SampledToken sampled;
  if (!std::isfinite(normaliser.maximum) || !std::isfinite(normaliser.log_total)) {
    sampled.is_finite = false;
    return sampled;
  }
  if (forced >= 0) {
    sampled.id = forced;
  } else if (request.temperature == 0.0f) {
    sampled.id = static_cast<int32_t>(std::find(logits, logits + vocabulary_, normaliser.maximum) - logits);
  } else {
    const double uniform = counter_uniform(request.key, static_cast<uint64_t>(position));
    sampled.id = request.truncates(vocabulary_) ? draw_truncated(logits, normaliser, request, uniform, sampled.sampled_logprob)
                                                : draw(logits, normaliser, uniform);
  }
  sampled.logprob = normaliser.logprob(logits[sampled.id]);
  if (!std::isfinite(sampled.logprob)) sampled.is_finite = false;
  return sampled;
}

int32_t TokenSampler::draw(const float* logits, const Normaliser& normaliser, double uniform) {
  const double target = uniform * normaliser.total;
  double below = 0.0;
  size_t block = 0;
  while (block + 1 < block_sums_.size() && below + block_sums_[block] <= target) below += block_sums_[block++];
  // Rounding may leave the target beyond the last block that has any weight.
  while (block > 0 && block_sums_[block] == 0.0f) --block;
  const int64_t start = static_cast<int64_t>(block) * logit_block;
  const int64_t count = std::min(logit_block, vocabulary_ - start);
  std::array<float, static_cast<size_t>(logit_block)> weights;
  generation_kernels().exponentials(logits + start, count, normaliser.maximum, normaliser.inverse_temperature, weights.data());
  int64_t last = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float weight = weights[static_cast<size_t>(i)];
    if (weight == 0.0f) continue;
    last = i;
    below += weight;
    if (below > target) break;
  }
  return static_cast<int32_t>(start + last);
}

void TokenSampler::sort_candidates(const float* logits, const Normaliser& normaliser, float level) {
  candidates_.clear();
  for (int64_t id = 0; id < vocabulary_; ++id) {
    if ((logits[id] - normaliser.maximum) * normaliser.inverse_temperature >= level) candidates_.push_back(static_cast<int32_t>(id));
  }
  std::sort(candidates_.begin(), candidates_.end(),
            [logits](int32_t a, int32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
}

// Truncation keeps a beginning of the ids sorted by probability: at most top_k of them; of what those weigh, the fewest that
// reach the share top_p; none below min_p times the largest probability. (Holtzman et al. 2020; Nguyen et al. 2024.)
int32_t TokenSampler::draw_truncated(const float* logits, const Normaliser& normaliser, const GenerationRequest& request,
                                     double uniform, float& sampled_logprob) {
  const bool has_top_k = request.top_k > 0 && request.top_k < vocabulary_;
  for (const float level : candidate_levels) {
    const bool holds_all = level == candidate_levels.back();
    sort_candidates(logits, normaliser, level);
    size_t considered = candidates_.size();
    if (has_top_k) {
      considered = std::min(considered, static_cast<size_t>(request.top_k));
      if (considered < static_cast<size_t>(request.top_k) && !holds_all) continue;
    }
    candidate_logits_.resize(considered);
    candidate_exponentials_.resize(considered);
    for (size_t i = 0; i < considered; ++i) candidate_logits_[i] = logits[candidates_[i]];
    generation_kernels().exponentials(candidate_logits_.data(), static_cast<int64_t>(considered), normaliser.maximum, normaliser.inverse_temperature,
                 candidate_exponentials_.data());
    double base = normaliser.total;
    if (has_top_k) {
      base = 0.0;
      for (const float weight : candidate_exponentials_) base += weight;
    }
    const double wanted = request.top_p < 1.0f ? static_cast<double>(request.top_p) * base : std::numeric_limits<double>::infinity();
    double mass = 0.0;
    size_t kept = 0;
    bool is_complete = has_top_k || holds_all;
    for (; kept < considered; ++kept) {
      const float weight = candidate_exponentials_[kept];
      if (kept > 0 && (mass >= wanted || weight < request.min_p)) {
        is_complete = true;
        break;
      }
      mass += weight;
    }
    if (mass >= wanted) is_complete = true;
    if (!is_complete) continue;
    double below = 0.0;
    size_t chosen = 0;
    for (size_t i = 0; i < kept; ++i) {
      if (candidate_exponentials_[i] == 0.0f) break;
      chosen = i;
      below += candidate_exponentials_[i];
      if (below > uniform * mass) break;
    }
    sampled_logprob = static_cast<float>(std::log(static_cast<double>(candidate_exponentials_[chosen]) / mass));
    return candidates_[chosen];
  }
  return candidates_.front();
}

void TokenSampler::alternatives(const float* logits, float temperature, int32_t count, std::vector<int32_t>& ids,
                                std::vector<float>& logprobs) {
  const Normaliser normaliser = normalise(logits, temperature);
  for (const float level : candidate_levels) {
    sort_candidates(logits, normaliser, level);
    if (static_cast<int64_t>(candidates_.size()) >= count || level == candidate_levels.back()) break;
  }
  ids.assign(candidates_.begin(), candidates_.begin() + std::min<int64_t>(count, static_cast<int64_t>(candidates_.size())));
  logprobs.clear();
  for (const int32_t id : ids) logprobs.push_back(normaliser.logprob(logits[id]));
}

ScoredToken TokenSampler::score(const float* logits, int32_t token, float temperature) {
  Normaliser normaliser;
  normaliser.maximum = generation_kernels().largest_logit(logits, vocabulary_);
  normaliser.inverse_temperature = temperature > 0.0f ? 1.0f / temperature : 1.0f;
  generation_kernels().exponential_moments(logits, vocabulary_, normaliser.maximum, normaliser.inverse_temperature, block_sums_.data(), block_moments_.data());
  double moment = 0.0;
  for (size_t block = 0; block < block_sums_.size(); ++block) {
    normaliser.total += block_sums_[block];
    moment += block_moments_[block];
  }
  normaliser.log_total = std::log(normaliser.total);
  ScoredToken scored;
  scored.logprob = normaliser.logprob(logits[token]);
  scored.entropy = static_cast<float>(normaliser.log_total - moment / normaliser.total);
  scored.is_finite = std::isfinite(normaliser.maximum) && std::isfinite(scored.logprob) && std::isfinite(scored.entropy);
  return scored;
}

}  // namespace rollscope

// Routing, grouping and mixing of mixture_layer.h.
#include "training/mixture_layer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

namespace rollscope {

namespace {

/// Which rows of the grouped buffers belong to which expert, and where each (token, choice) lies.
struct Grouping {
  std::vector<int64_t> first;     // [experts + 1]
  std::vector<int32_t> place;     // [n · k] row in the grouped buffers
  std::vector<int32_t> token_of;  // [n · k] token of a grouped row

  Grouping(const int32_t* experts, int64_t tokens, const MixtureConfig& mixture) {
    const int64_t k = mixture.experts_per_token;
    first.assign(static_cast<size_t>(mixture.experts) + 1, 0);
    place.resize(static_cast<size_t>(tokens * k));
    token_of.resize(static_cast<size_t>(tokens * k));
    for (int64_t i = 0; i < tokens * k; i++) first[static_cast<size_t>(experts[i]) + 1]++;
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<int64_t> next(first.begin(), first.end() - 1);
    for (int64_t i = 0; i < tokens * k; i++) {
      const int64_t row = next[static_cast<size_t>(experts[i])]++;
      place[static_cast<size_t>(i)] = static_cast<int32_t>(row);
      token_of[static_cast<size_t>(row)] = static_cast<int32_t>(i / k);
    }
  }
};

/// The parts of scratch.wide.
struct Parts {
  float* activation;  // [n · k, width]
  float* activation_gradient;  // [n · k, width]
  float* input;       // [n · k, hidden]
  float* output;      // [n · k, hidden]

  Parts(float* wide, int64_t rows, int64_t width, int64_t hidden)
      : activation(wide), activation_gradient(wide + rows * width), input(wide + 2 * rows * width), output(input + rows * hidden) {}
};

/// Softmax of one token's router logits in place, then its experts, most probable first (ties: lowest index), and their weights.
void choose(float* logits, int32_t* experts, float* mix, const int16_t* forced, const MixtureConfig& mixture) {
  const int64_t k = mixture.experts_per_token;
  const float highest = *std::max_element(logits, logits + mixture.experts);
  double sum = 0.0;
  for (int64_t e = 0; e < mixture.experts; e++) sum += std::exp(static_cast<double>(logits[e] - highest));
  for (int64_t e = 0; e < mixture.experts; e++) logits[e] = static_cast<float>(std::exp(static_cast<double>(logits[e] - highest)) / sum);
  std::vector<int32_t> taken;
  if (forced != nullptr)
    for (int64_t choice = 0; choice < k; choice++)
      if (forced[choice] >= 0) taken.push_back(forced[choice]);
  while (static_cast<int64_t>(taken.size()) < k) {
    int32_t best = -1;
    for (int32_t e = 0; e < mixture.experts; e++) {
      if (std::find(taken.begin(), taken.end(), e) != taken.end()) continue;
      if (best < 0 || logits[e] > logits[best]) best = e;
    }
    taken.push_back(best);
  }
  if (forced != nullptr) std::stable_sort(taken.begin(), taken.end(), [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  float total = 0.0f;
  for (const int32_t expert : taken) total += logits[expert];
  for (int64_t choice = 0; choice < k; choice++) {
    experts[choice] = taken[static_cast<size_t>(choice)];
    mix[choice] = mixture.normalise_top_k ? logits[experts[choice]] / total : logits[experts[choice]];
  }
}

void gather(float* to, const float* from, const std::vector<int32_t>& token_of, int64_t width) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < static_cast<int64_t>(token_of.size()); row++)
    std::memcpy(to + row * width, from + token_of[static_cast<size_t>(row)] * width, static_cast<size_t>(width) * sizeof(float));
}

/// d logits of one token's softmax from d mix, in place of `gradient`.
void router_gradient(float* gradient, const float* probabilities, const int32_t* experts, const float* mix, const float* dmix,
                     const MixtureConfig& mixture) {
  const int64_t k = mixture.experts_per_token;
  std::memset(gradient, 0, static_cast<size_t>(mixture.experts) * sizeof(float));
  double mean = 0.0;
  for (int64_t choice = 0; choice < k; choice++) mean += static_cast<double>(mix[choice]) * dmix[choice];
  if (!mixture.normalise_top_k) {
    // w = p: dz = p · ([chosen] dw − Σ p dw) over all experts.
    for (int64_t e = 0; e < mixture.experts; e++) gradient[e] = static_cast<float>(-probabilities[e] * mean);
    for (int64_t choice = 0; choice < k; choice++) gradient[experts[choice]] += mix[choice] * dmix[choice];
    return;
  }
  // w = p / Σ chosen p is a softmax over the chosen logits alone.
  for (int64_t choice = 0; choice < k; choice++) gradient[experts[choice]] = static_cast<float>(mix[choice] * (dmix[choice] - mean));
}

}  // namespace

void mixture_forward(const LayerPass& pass, int64_t layer, const LayerTape& tape, bool output) {
  const ModelConfig& config = pass.model.config();
  const MixtureConfig& mixture = config.mixture;
  const LayerLayout& at = pass.model.layout().layer(layer);
  const LayerScratch& scratch = pass.scratch;
  const int64_t n = pass.tokens(), k = mixture.experts_per_token, hidden = config.hidden, width = mixture.intermediate;
  pass.products.forward(tape.probabilities, scratch.normed, pass.weights + at.router, n, mixture.experts, hidden);
  const int16_t* forced = pass.batch.routing.empty() ? nullptr : pass.batch.routing.data() + layer * n * k;
#pragma omp parallel for schedule(static)
  for (int64_t token = 0; token < n; token++)
    choose(tape.probabilities + token * mixture.experts, tape.experts + token * k, tape.mix + token * k,
           forced == nullptr ? nullptr : forced + token * k, mixture);
  const Grouping grouping(tape.experts, n, mixture);
  const Parts parts(scratch.wide, n * k, width, hidden);
  gather(parts.input, scratch.normed, grouping.token_of, hidden);
  for (int64_t expert = 0; expert < mixture.experts; expert++) {
    const int64_t first = grouping.first[static_cast<size_t>(expert)];
    const int64_t rows = grouping.first[static_cast<size_t>(expert) + 1] - first;
    if (rows == 0) continue;
    pass.products.forward(tape.gate_up + first * 2 * width, parts.input + first * hidden,
                          pass.weights + at.expert_gate_up + expert * at.expert_gate_up_stride, rows, 2 * width, hidden);
  }
  if (!output) return;
  kernels().swiglu(parts.activation, tape.gate_up, n * k, width);
  for (int64_t expert = 0; expert < mixture.experts; expert++) {
    const int64_t first = grouping.first[static_cast<size_t>(expert)];
    const int64_t rows = grouping.first[static_cast<size_t>(expert) + 1] - first;
    if (rows == 0) continue;
    pass.products.forward(parts.output + first * hidden, parts.activation + first * width,
                          pass.weights + at.expert_down + expert * at.expert_down_stride, rows, hidden, width);
  }
#pragma omp parallel for schedule(static)
  for (int64_t token = 0; token < n; token++) {
    float* sum = scratch.delta + token * hidden;
    std::memset(sum, 0, static_cast<size_t>(hidden) * sizeof(float));
    for (int64_t choice = token * k; choice < (token + 1) * k; choice++) {
      const float* from = parts.output + grouping.place[static_cast<size_t>(choice)] * hidden;
      const float weight = tape.mix[choice];
      for (int64_t i = 0; i < hidden; i++) sum[i] += weight * from[i];
    }
  }
}

void mixture_backward(const LayerPass& pass, int64_t layer, const LayerTape& tape, float* gradients) {
  const ModelConfig& config = pass.model.config();
  const MixtureConfig& mixture = config.mixture;
  const LayerLayout& at = pass.model.layout().layer(layer);
  const LayerScratch& scratch = pass.scratch;
  const int64_t n = pass.tokens(), k = mixture.experts_per_token, hidden = config.hidden, width = mixture.intermediate;
  const Grouping grouping(tape.experts, n, mixture);
  const Parts parts(scratch.wide, n * k, width, hidden);
  const auto each_expert = [&](auto&& visit) {
    for (int64_t expert = 0; expert < mixture.experts; expert++) {
      const int64_t first = grouping.first[static_cast<size_t>(expert)];
      const int64_t rows = grouping.first[static_cast<size_t>(expert) + 1] - first;
      if (rows > 0) visit(first, rows, at.expert_gate_up + expert * at.expert_gate_up_stride, at.expert_down + expert * at.expert_down_stride);
    }
  };
  gather(parts.input, scratch.normed, grouping.token_of, hidden);
  gather(parts.output, scratch.gradient, grouping.token_of, hidden);
  kernels().swiglu(parts.activation, tape.gate_up, n * k, width);
  each_expert([&](int64_t first, int64_t rows, int64_t, int64_t down) {
    pass.products.input_gradient(parts.activation_gradient + first * width, parts.output + first * hidden, pass.weights + down, rows, hidden,
                                 width);
  });
  std::vector<float> dmix(static_cast<size_t>(n * k));
#pragma omp parallel for schedule(static)
  for (int64_t choice = 0; choice < n * k; choice++) {
    float* activation = parts.activation + grouping.place[static_cast<size_t>(choice)] * width;
    float* gradient = parts.activation_gradient + grouping.place[static_cast<size_t>(choice)] * width;
    const float weight = tape.mix[choice];
    double dot = 0.0;
    for (int64_t i = 0; i < width; i++) {
      dot += static_cast<double>(activation[i]) * gradient[i];
      activation[i] *= weight;
      gradient[i] *= weight;
    }
    dmix[static_cast<size_t>(choice)] = static_cast<float>(dot);
  }
  each_expert([&](int64_t first, int64_t rows, int64_t, int64_t down) {
    pass.products.weight_gradient(gradients + down, parts.output + first * hidden, parts.activation + first * width, rows, hidden, width);
  });
  kernels().swiglu_backward(parts.activation_gradient, tape.gate_up, n * k, width);
  each_expert([&](int64_t first, int64_t rows, int64_t gate_up, int64_t) {
    const float* gradient = tape.gate_up + first * 2 * width;
    pass.products.weight_gradient(gradients + gate_up, gradient, parts.input + first * hidden, rows, 2 * width, hidden);
    pass.products.input_gradient(parts.output + first * hidden, gradient, pass.weights + gate_up, rows, 2 * width, hidden);
  });
#pragma omp parallel for schedule(static)
  for (int64_t token = 0; token < n; token++) {
    router_gradient(scratch.router_gradient + token * mixture.experts, tape.probabilities + token * mixture.experts,
                    tape.experts + token * k, tape.mix + token * k, dmix.data() + token * k, mixture);
    float* sum = scratch.delta + token * hidden;
    std::memset(sum, 0, static_cast<size_t>(hidden) * sizeof(float));
    for (int64_t choice = token * k; choice < (token + 1) * k; choice++) {
      const float* from = parts.output + grouping.place[static_cast<size_t>(choice)] * hidden;
      for (int64_t i = 0; i < hidden; i++) sum[i] += from[i];
    }
  }
  pass.products.weight_gradient(gradients + at.router, scratch.router_gradient, scratch.normed, n, mixture.experts, hidden);
  pass.products.input_gradient(scratch.delta, scratch.router_gradient, pass.weights + at.router, n, mixture.experts, hidden, true);
}

}  // namespace rollscope

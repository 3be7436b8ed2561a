// Chunked output head; see output_head.h.
#include "training/output_head.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "engine_error.h"

namespace rollscope {

namespace {

constexpr int64_t kChunkBytes = int64_t{100} << 20;
constexpr int64_t kMostChunkRows = 2048;

[[noreturn]] void refuse_non_finite(const char* what, int32_t token) {
  throw EngineError("ENGINE_NON_FINITE", std::string("The ") + what + " of token " + std::to_string(token) + " is not a finite number.",
                    "The weights have diverged: resume from an earlier checkpoint with a lower learning rate.");
}

float at(const std::vector<float>& values, int32_t index) { return values.empty() ? 0.0f : values[static_cast<size_t>(index)]; }

/// The head's input: states as they are, or scaled copies for rows with a temperature of their own.
const float* head_inputs(const HeadPass& pass, HeadTape& tape) {
  if (pass.plan.rows_are_states()) return tape.normed.data();
  const int64_t hidden = pass.model.config().hidden;
  const std::vector<HeadRow>& rows = pass.plan.rows();
  tape.inputs.reserve(static_cast<int64_t>(rows.size()) * hidden);
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < static_cast<int64_t>(rows.size()); row++) {
    const HeadRow& from = rows[static_cast<size_t>(row)];
    const float* state = tape.normed.data() + from.state * hidden;
    float* to = tape.inputs.data() + row * hidden;
    for (int64_t i = 0; i < hidden; i++) to[i] = state[i] * from.inverse_temperature;
  }
  return tape.inputs.data();
}

void gather_states(const HeadPass& pass, HeadTape& tape, const float* middle, const float* delta) {
  const int64_t hidden = pass.model.config().hidden;
  const std::vector<int32_t>& states = pass.plan.states();
  tape.states.reserve(static_cast<int64_t>(states.size()) * hidden);
#pragma omp parallel for schedule(static)
  for (int64_t index = 0; index < static_cast<int64_t>(states.size()); index++) {
    const int64_t from = static_cast<int64_t>(states[static_cast<size_t>(index)]) * hidden;
    float* to = tape.states.data() + index * hidden;
    for (int64_t i = 0; i < hidden; i++) to[i] = middle[from + i] + delta[from + i];
  }
}

/// First wanted token whose row is at least `row`.
size_t first_wanted(const std::vector<WantedToken>& wanted, int64_t row) {
  return static_cast<size_t>(std::lower_bound(wanted.begin(), wanted.end(), row, [](const WantedToken& a, int64_t b) { return a.row < b; }) -
                             wanted.begin());
}

void read_distribution(const HeadPass& pass, const HeadTape& tape, const float* logits, int64_t first, int64_t count, Scalars& scalars) {
  const int64_t vocabulary = pass.model.config().vocabulary;
  const std::vector<WantedToken>& wanted = pass.plan.wanted();
  for (size_t i = first_wanted(wanted, first); i < wanted.size() && wanted[i].row < first + count; i++) {
    const WantedToken& token = wanted[i];
    const LogitStatistics& row = tape.statistics[static_cast<size_t>(token.row)];
    const int32_t id = pass.batch.tokens[static_cast<size_t>(token.token)];
    const float logprob = logits[(token.row - first) * vocabulary + id] - row.log_sum;
    if (!std::isfinite(logprob)) refuse_non_finite("log-probability", token.token);
    if (!std::isfinite(row.entropy)) refuse_non_finite("entropy", token.token);
    if (!scalars.logprob.empty()) scalars.logprob[static_cast<size_t>(token.token)] = logprob;
    if (!scalars.entropy.empty()) scalars.entropy[static_cast<size_t>(token.token)] = row.entropy;
  }
}

void read_values(const HeadPass& pass, const HeadTape& tape, Scalars& scalars) {
  const int64_t hidden = pass.model.config().hidden;
  const float* weight = pass.weights + pass.model.layout().value_weight();
  const float bias = pass.weights[pass.model.layout().value_bias()];
  for (const WantedToken& token : pass.plan.wanted()) {
    const float* state = tape.normed.data() + token.state * hidden;
    double sum = bias;
    for (int64_t i = 0; i < hidden; i++) sum += static_cast<double>(weight[i]) * state[i];
    if (!std::isfinite(sum)) refuse_non_finite("value", token.token);
    scalars.value[static_cast<size_t>(token.token)] = static_cast<float>(sum);
  }
}

/// Σ of the cotangents over the tokens that share a row.
struct RowCotangents {
  std::vector<float> logprob, entropy;

  RowCotangents(const ForestPlan& plan, const Cotangents& cotangents) : logprob(plan.rows().size()), entropy(plan.rows().size()) {
    for (const WantedToken& token : plan.wanted()) {
      logprob[static_cast<size_t>(token.row)] += at(cotangents.logprob, token.token);
      entropy[static_cast<size_t>(token.row)] += at(cotangents.entropy, token.token);
    }
  }
};

void distribution_backward(const HeadPass& pass, HeadTape& tape, const Cotangents& cotangents, float* gradients) {
  const ModelConfig& config = pass.model.config();
  const int64_t hidden = config.hidden, vocabulary = config.vocabulary;
  const auto rows = static_cast<int64_t>(pass.plan.rows().size());
  const float* head = pass.weights + pass.model.layout().head();
  float* head_gradient = gradients + pass.model.layout().head();
  const float* inputs = pass.plan.rows_are_states() ? tape.normed.data() : tape.inputs.data();
  const std::vector<WantedToken>& wanted = pass.plan.wanted();
  const RowCotangents sums(pass.plan, cotangents);
  tape.gradient.reserve(rows * hidden);
  const int64_t chunk = head_chunk_rows(config);
  for (int64_t first = 0; first < rows; first += chunk) {
    pass.cancel.throw_if_raised();
    const int64_t count = std::min(chunk, rows - first);
    float* logits = tape.keeps_logits ? tape.logits.data() + first * vocabulary : tape.logits.data();
    if (!tape.keeps_logits) pass.products.forward(logits, inputs + first * hidden, head, count, vocabulary, hidden);
    kernels().logit_gradient(logits, tape.statistics.data() + first, sums.logprob.data() + first, sums.entropy.data() + first, count,
                             vocabulary);
    for (size_t i = first_wanted(wanted, first); i < wanted.size() && wanted[i].row < first + count; i++) {
      const int32_t id = pass.batch.tokens[static_cast<size_t>(wanted[i].token)];
      logits[(wanted[i].row - first) * vocabulary + id] += at(cotangents.logprob, wanted[i].token);
    }
    pass.products.weight_gradient(head_gradient, logits, inputs + first * hidden, count, vocabulary, hidden);
    pass.products.input_gradient(tape.gradient.data() + first * hidden, logits, head, count, vocabulary, hidden);
  }
  // A state's gradient is the sum over its rows, each divided by its temperature as the inputs were.
  for (int64_t row = 0; row < rows; row++) {
    const HeadRow& from = pass.plan.rows()[static_cast<size_t>(row)];
    float* to = tape.state_gradient.data() + from.state * hidden;
    const float* add = tape.gradient.data() + row * hidden;
    for (int64_t i = 0; i < hidden; i++) to[i] += add[i] * from.inverse_temperature;
  }
}

void value_backward(const HeadPass& pass, HeadTape& tape, const Cotangents& cotangents, float* gradients) {
  const int64_t hidden = pass.model.config().hidden;
  const ParameterLayout& layout = pass.model.layout();
  const float* weight = pass.weights + layout.value_weight();
  float* weight_gradient = gradients + layout.value_weight();
  for (const WantedToken& token : pass.plan.wanted()) {
    const float c = at(cotangents.value, token.token);
    if (c == 0.0f) continue;
    const float* state = tape.normed.data() + token.state * hidden;
    float* to = tape.state_gradient.data() + token.state * hidden;
    for (int64_t i = 0; i < hidden; i++) {
      weight_gradient[i] += c * state[i];
      to[i] += c * weight[i];
    }
    gradients[layout.value_bias()] += c;
  }
}

}  // namespace

int64_t HeadTape::bytes() const {
  return (states.size() + normed.size() + inputs.size() + logits.size() + gradient.size() + state_gradient.size()) *
         static_cast<int64_t>(sizeof(float));
}

void HeadTape::clear() {
  for (AlignedBuffer<float>* buffer : {&states, &normed, &inputs, &logits, &gradient, &state_gradient}) buffer->resize(0);
  statistics.clear();
}

int64_t head_chunk_rows(const ModelConfig& config) {
  const int64_t rows = kChunkBytes / (config.vocabulary * static_cast<int64_t>(sizeof(float))) / 64 * 64;
  return std::clamp<int64_t>(rows, 64, kMostChunkRows);
}

int64_t head_floats(const ModelConfig& config, int64_t rows, bool keeps_logits, bool backward) {
  const int64_t logits = config.vocabulary * (keeps_logits ? rows : std::min(rows, head_chunk_rows(config)));
  return logits + rows * config.hidden * (backward ? 5 : 3);
}

Scalars head_forward(const HeadPass& pass, HeadTape& tape, const float* middle, const float* delta, const Outputs& want, bool keep_logits) {
  const ModelConfig& config = pass.model.config();
  const int64_t hidden = config.hidden, vocabulary = config.vocabulary;
  const float nothing = std::numeric_limits<float>::quiet_NaN();
  Scalars scalars;
  if (want.logprob) scalars.logprob.assign(pass.batch.tokens.size(), nothing);
  if (want.entropy) scalars.entropy.assign(pass.batch.tokens.size(), nothing);
  if (want.value) scalars.value.assign(pass.batch.tokens.size(), nothing);
  const auto states = static_cast<int64_t>(pass.plan.states().size());
  const auto rows = static_cast<int64_t>(pass.plan.rows().size());
  if (rows == 0) return scalars;
  gather_states(pass, tape, middle, delta);
  tape.normed.reserve(states * hidden);
  kernels().rms_norm(tape.normed.data(), tape.states.data(), pass.weights + pass.model.layout().final_norm(), states, hidden,
                     config.rms_epsilon);
  if (want.value) read_values(pass, tape, scalars);
  if (!want.distribution()) return scalars;
  const float* inputs = head_inputs(pass, tape);
  const float* head = pass.weights + pass.model.layout().head();
  const int64_t chunk = head_chunk_rows(config);
  tape.keeps_logits = keep_logits;
  tape.logits.reserve(vocabulary * (keep_logits ? rows : std::min(rows, chunk)));
  tape.statistics.resize(static_cast<size_t>(rows));
  for (int64_t first = 0; first < rows; first += chunk) {
    pass.cancel.throw_if_raised();
    const int64_t count = std::min(chunk, rows - first);
    float* logits = keep_logits ? tape.logits.data() + first * vocabulary : tape.logits.data();
    pass.products.forward(logits, inputs + first * hidden, head, count, vocabulary, hidden);
    kernels().logit_statistics(tape.statistics.data() + first, logits, count, vocabulary);
    read_distribution(pass, tape, logits, first, count, scalars);
  }
  return scalars;
}

void head_backward(const HeadPass& pass, HeadTape& tape, const Cotangents& cotangents, float* gradient, float* gradients) {
  const ModelConfig& config = pass.model.config();
  const int64_t hidden = config.hidden;
  const auto states = static_cast<int64_t>(pass.plan.states().size());
  std::memset(gradient, 0, static_cast<size_t>(pass.batch.size() * hidden) * sizeof(float));
  if (states == 0) return;
  tape.state_gradient.reserve(states * hidden);
  std::memset(tape.state_gradient.data(), 0, static_cast<size_t>(states * hidden) * sizeof(float));
  if (!cotangents.logprob.empty() || !cotangents.entropy.empty()) distribution_backward(pass, tape, cotangents, gradients);
  if (!cotangents.value.empty()) value_backward(pass, tape, cotangents, gradients);
  // The norm's gradient is added to zeros, then goes to the tokens the states came from.
  tape.gradient.reserve(states * hidden);
  std::memset(tape.gradient.data(), 0, static_cast<size_t>(states * hidden) * sizeof(float));
  AlignedBuffer<float> partial((states + 63) / 64 * hidden);
  const int64_t norm = pass.model.layout().final_norm();
  kernels().rms_norm_backward(tape.gradient.data(), gradients + norm, tape.state_gradient.data(), tape.states.data(), pass.weights + norm,
                              partial.data(), states, hidden, config.rms_epsilon);
  for (int64_t index = 0; index < states; index++)
    std::memcpy(gradient + pass.plan.states()[static_cast<size_t>(index)] * hidden, tape.gradient.data() + index * hidden,
                static_cast<size_t>(hidden) * sizeof(float));
}

}  // namespace rollscope

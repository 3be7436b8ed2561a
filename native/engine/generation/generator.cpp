// One iteration after the other; see generator.h.
#include "generation/generator.h"

#include <omp.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <exception>
#include <new>
#include <utility>

namespace rollscope {

namespace {

/// Rows of logits that exist at once.
constexpr int64_t logit_rows = 64;
/// Below this many logits a second thread costs more than it brings.
constexpr int64_t parallel_logits = 32768;

KvGeometry geometry_of(const ModelConfig& config) { return {config.layers, config.kv_heads, config.head_dim}; }

EngineError non_finite(const std::string& what, int64_t position) {
  return EngineError("ENGINE_NON_FINITE", "The model gave a non-finite " + what + " for position " + std::to_string(position) + ".",
                     "The weights have diverged or the checkpoint is damaged; go back to an earlier checkpoint.");
}

}  // namespace

EngineError unexpected(const std::exception& failure) {
  if (dynamic_cast<const std::bad_alloc*>(&failure) != nullptr) {
    return EngineError("ENGINE_OUT_OF_MEMORY", "The engine ran out of memory while generating.",
                       "Lower the engine's cache limit, close other programs, or use a smaller model.");
  }
  return EngineError("ENGINE_INTERNAL", std::string("The engine failed while generating: ") + failure.what() + ".",
                     "Report this with the command that led here.");
}

Generator::Generator(Model& model, const GeneratorOptions& options, TokenBytes token_bytes)
    : model_(model),
      token_bytes_(std::move(token_bytes)),
      weights_(model.config(), model.layout()),
      inference_(model.config(), geometry_of(model.config())),
      scheduler_(geometry_of(model.config()), options.cache_bytes, options.limits) {
  request_limits_.vocabulary = model.config().vocabulary;
  request_limits_.max_positions = model.config().max_positions;
  request_limits_.cache_positions = scheduler_.pages().capacity() * block_positions;
  request_limits_.has_token_bytes = !token_bytes_.empty();
}

void Generator::submit(int64_t id, GenerationRequest request) {
  GenerationEvent event;
  event.request = id;
  event.version = static_cast<int32_t>(weights_.version());
  try {
    check_request(request, request_limits_);
  } catch (const EngineError& error) {
    event.finish = Finish::error;
    event.error_code = error.code();
    event.error_sentence = error.what();
    event.error_next = error.next();
    events_.push_back(std::move(event));
    return;
  }
  if (request.is_score() && request.score_from == static_cast<int64_t>(request.prompt.size())) {
    event.finish = Finish::stop;
    events_.push_back(std::move(event));
    return;
  }
  auto sequence = std::make_unique<Sequence>();
  sequence->id = id;
  sequence->tokens = request.prompt;
  sequence->stops = StopMatcher(request.stop_strings);
  sequence->request = std::move(request);
  scheduler_.add(std::move(sequence));
}

void Generator::abort(int64_t id) {
  Sequence* sequence = scheduler_.find(id);
  if (sequence != nullptr) end(sequence, event_of(*sequence), Finish::abort);
}

void Generator::pause(PauseMode mode) {
  pause_ = mode == PauseMode::wait ? Pause::wait : Pause::hold;
  if (mode != PauseMode::abort) return;
  for (Sequence* sequence : scheduler_.all()) end(sequence, event_of(*sequence), Finish::abort);
}

bool Generator::has_settled() const {
  return pause_ == Pause::hold || (pause_ == Pause::wait && scheduler_.running() == 0 && scheduler_.interrupted() == 0);
}

bool Generator::has_work() const {
  if (!weights_.is_loaded() || pause_ == Pause::hold) return false;
  if (pause_ == Pause::wait) return !has_settled();
  return scheduler_.running() + scheduler_.waiting() > 0;
}

void Generator::iterate(MatrixProducts& products) {
  if (!has_work()) return;
  try {
    const IterationPlan& plan = scheduler_.plan(pause_ == Pause::none);
    if (plan.rows == 0) return;
    gather(plan);
    const auto last = static_cast<uint64_t>(*std::max_element(rows_.positions.begin(), rows_.positions.end()));
    const auto positions = std::min<int64_t>(static_cast<int64_t>(std::bit_ceil(last + 1)), model_.config().max_positions);
    inference_.forward(products, weights_, rows_, model_.rope().table(positions));
    read_logits(products);
  } catch (const EngineError& error) {
    fail_all(error);
  } catch (const std::exception& failure) {
    fail_all(unexpected(failure));
  }
}

void Generator::gather(const IterationPlan& plan) {
  rows_.clear();
  readers_.clear();
  std::vector<int64_t> last_row(plan.spans.size(), -1);
  for (size_t index = 0; index < plan.spans.size(); ++index) {
    const RowSpan& span = plan.spans[index];
    Sequence* sequence = span.sequence;
    const auto table = static_cast<int32_t>(rows_.blocks.size());
    const auto blocks = static_cast<size_t>((span.start + span.count + block_positions - 1) / block_positions);
    for (size_t block = 0; block < blocks; ++block) rows_.blocks.push_back(scheduler_.pages().data(sequence->blocks[block]));
    for (int64_t position = span.start; position < span.start + span.count; ++position) {
      const bool is_wanted = sequence->request.is_score() ? position + 1 >= sequence->next_scored() : position + 1 == sequence->goal();
      if (is_wanted) {
        const auto wanted = static_cast<int64_t>(rows_.wanted.size());
        rows_.wanted.push_back(static_cast<int32_t>(rows_.tokens.size()));
        last_row[index] = wanted;
        const int32_t target = sequence->request.is_score() ? sequence->tokens[static_cast<size_t>(position + 1)] : -1;
        readers_.push_back({sequence, wanted, target});
      }
      rows_.tokens.push_back(sequence->tokens[static_cast<size_t>(position)]);
      rows_.positions.push_back(static_cast<int32_t>(position));
      rows_.tables.push_back(table);
    }
  }
  rows_.are_independent = !plan.has_newcomers && plan.rows == static_cast<int64_t>(plan.spans.size()) &&
                          rows_.wanted.size() == plan.spans.size();
  for (const Follower& follower : plan.followers) readers_.push_back({follower.sequence, last_row[follower.span], -1});
  std::stable_sort(readers_.begin(), readers_.end(), [](const Reader& a, const Reader& b) { return a.row < b.row; });
}

void Generator::read_logits(MatrixProducts& products) {
  const int64_t vocabulary = model_.config().vocabulary;
  const auto threads = static_cast<size_t>(omp_get_max_threads());
  while (samplers_.size() < threads) samplers_.emplace_back(vocabulary);
  if (readings_.size() < readers_.size()) readings_.resize(readers_.size());
  const auto wanted = static_cast<int64_t>(rows_.wanted.size());
  size_t next = 0;
  for (int64_t first = 0; first < wanted; first += logit_rows) {
    const int64_t count = std::min(logit_rows, wanted - first);
    const float* logits = inference_.logits(products, weights_, first, count);
    size_t end = next;
    while (end < readers_.size() && readers_[end].row < first + count) ++end;
#pragma omp parallel for schedule(dynamic, 1) if (static_cast<int64_t>(end - next) * vocabulary >= parallel_logits)
    for (size_t index = next; index < end; ++index) {
      const float* row = logits + (readers_[index].row - first) * vocabulary;
      read_row(readers_[index], row, readings_[index], samplers_[static_cast<size_t>(omp_get_thread_num())]);
    }
    next = end;
  }
  for (size_t index = 0; index < readers_.size(); ++index) accept(readers_[index], readings_[index]);
}

void Generator::read_row(const Reader& reader, const float* logits, Reading& reading, TokenSampler& sampler) const {
  const GenerationRequest& request = reader.sequence->request;
  if (reader.target >= 0) {
    reading.scored = sampler.score(logits, reader.target, request.temperature);
    return;
  }
  const int64_t generated = reader.sequence->generated();
  const int32_t forced = request.is_forced ? request.forced[static_cast<size_t>(generated)] : -1;
  reading.sampled = sampler.sample(logits, request, static_cast<int64_t>(reader.sequence->tokens.size()), forced);
  if (request.top_alternatives > 0 && reading.sampled.is_finite) {
    sampler.alternatives(logits, request.temperature, request.top_alternatives, reading.alternative_ids, reading.alternative_logprobs);
  }
}

void Generator::accept(const Reader& reader, Reading& reading) {
  Sequence& sequence = *reader.sequence;
  if (reader.target < 0) {
    accept_token(sequence, reading);
    return;
  }
  sequence.score_logprobs.push_back(reading.scored.logprob);
  sequence.score_entropies.push_back(reading.scored.entropy);
  if (sequence.next_scored() < static_cast<int64_t>(sequence.tokens.size())) return;
  for (int64_t i = 0; i < static_cast<int64_t>(sequence.score_logprobs.size()); ++i) {
    const auto index = static_cast<size_t>(i);
    if (std::isfinite(sequence.score_logprobs[index]) && std::isfinite(sequence.score_entropies[index])) continue;
    fail(&sequence, non_finite("log-probability", sequence.request.score_from + i));
    return;
  }
  GenerationEvent event = event_of(sequence);
  event.score_logprobs = std::move(sequence.score_logprobs);
  event.score_entropies = std::move(sequence.score_entropies);
  end(&sequence, std::move(event), Finish::stop);
}

void Generator::accept_token(Sequence& sequence, Reading& reading) {
  const GenerationRequest& request = sequence.request;
  const SampledToken& sampled = reading.sampled;
  if (!sampled.is_finite) {
    fail(&sequence, non_finite("distribution", static_cast<int64_t>(sequence.tokens.size())));
    return;
  }
  sequence.tokens.push_back(sampled.id);
  GenerationEvent event = event_of(sequence);
  event.token = sampled.id;
  event.logprob = sampled.logprob;
  event.sampled_logprob = sampled.sampled_logprob;
  event.is_truncated = request.truncates(model_.config().vocabulary) && !request.is_forced;
  event.alternative_ids.swap(reading.alternative_ids);
  event.alternative_logprobs.swap(reading.alternative_logprobs);
  reading.alternative_ids.clear();
  reading.alternative_logprobs.clear();
  Finish finish = Finish::none;
  event.cause.string_index = sequence.stops.push(token_bytes_.of(sampled.id));
  if (std::find(request.stop_ids.begin(), request.stop_ids.end(), sampled.id) != request.stop_ids.end()) {
    event.cause = {sampled.id, -1};
    finish = Finish::stop;
  } else if (event.cause.string_index >= 0) {
    finish = Finish::stop;
  } else if (request.is_forced && sequence.generated() == static_cast<int64_t>(request.forced.size())) {
    finish = Finish::stop;
  } else if (sequence.generated() >= request.max_new_tokens) {
    finish = Finish::length;
  }
  if (finish != Finish::none) {
    end(&sequence, std::move(event), finish);
  } else {
    events_.push_back(std::move(event));
  }
}

GenerationEvent Generator::event_of(Sequence& sequence) const {
  GenerationEvent event;
  event.request = sequence.id;
  event.version = static_cast<int32_t>(weights_.version());
  if (!sequence.is_announced) event.cached_tokens = static_cast<int32_t>(std::max<int64_t>(sequence.cached_tokens, 0));
  sequence.is_announced = true;
  return event;
}

void Generator::end(Sequence* sequence, GenerationEvent event, Finish finish) {
  event.finish = finish;
  events_.push_back(std::move(event));
  scheduler_.finish(sequence);
}

void Generator::fail(Sequence* sequence, const EngineError& error) {
  GenerationEvent event = event_of(*sequence);
  event.finish = Finish::error;
  event.error_code = error.code();
  event.error_sentence = error.what();
  event.error_next = error.next();
  events_.push_back(std::move(event));
  scheduler_.drop(sequence);
}

/// Blocks of a broken iteration may be half written, so nothing of the cache can be trusted.
void Generator::fail_all(const EngineError& error) {
  for (Sequence* sequence : scheduler_.all()) fail(sequence, error);
  scheduler_.restart(weights_.version());
}

std::vector<GenerationEvent> Generator::take_events() { return std::exchange(events_, {}); }

int64_t Generator::update_weights(MatrixProducts& products) {
  // Released memory stays released; restore_memory takes whatever the model then holds.
  if (is_released_) return model_.version();
  if (weights_.is_loaded() && stamp_ == model_.stamp()) return weights_.version();
  scheduler_.restart(model_.version());
  weights_.take(products, model_.weights(), model_.version());
  stamp_ = model_.stamp();
  return weights_.version();
}

void Generator::release_memory() {
  scheduler_.restart(weights_.version());
  scheduler_.pages().release_memory();
  inference_.release_memory();
  weights_.release();
  samplers_.clear();
  is_released_ = true;
}

void Generator::restore_memory(MatrixProducts& products) {
  is_released_ = false;
  update_weights(products);
}

GeneratorHealth Generator::health() const {
  GeneratorHealth health;
  health.running = static_cast<int64_t>(scheduler_.running());
  health.queued = static_cast<int64_t>(scheduler_.waiting());
  health.version = weights_.version();
  health.cached_tokens = scheduler_.cached_tokens();
  health.cache_blocks = scheduler_.pages().used();
  health.cache_capacity = scheduler_.pages().capacity();
  health.is_paused = pause_ != Pause::none;
  health.is_released = is_released_;
  health.counts = scheduler_.counts();
  return health;
}

}  // namespace rollscope

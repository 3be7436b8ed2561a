// Conversion of requests and events; shapes are typed in index.d.ts.
#include "generation_events.h"

#include "promise_job.h"
#include "read_value.h"

namespace rollscope::binding {

namespace {

uint64_t unsigned_at(const Napi::Object& object, const char* name) { return static_cast<uint64_t>(integer_at(object, name)); }

template <typename Array, typename Read>
Array column(Napi::Env env, const std::vector<GenerationEvent>& events, Read read) {
  Array array = Array::New(env, events.size());
  for (size_t i = 0; i < events.size(); i++) array[i] = read(events[i]);
  return array;
}

Napi::Int32Array to_integers(Napi::Env env, const std::vector<int32_t>& values) {
  Napi::Int32Array array = Napi::Int32Array::New(env, values.size());
  std::copy(values.begin(), values.end(), array.Data());
  return array;
}

}  // namespace

GenerationRequest read_request(const Napi::Object& from) {
  GenerationRequest request;
  request.prompt = integers(property(from, "tokens"), "tokens");
  request.max_new_tokens = integer_at(from, "maxNewTokens");
  request.temperature = static_cast<float>(number_at(from, "temperature"));
  request.top_p = static_cast<float>(number_at(from, "topP"));
  request.top_k = static_cast<int32_t>(integer_at(from, "topK"));
  request.min_p = static_cast<float>(number_at(from, "minP"));
  request.stop_ids = integers(property(from, "stopIds"), "stopIds");
  request.stop_strings = texts(property(from, "stopStrings"));
  request.key.seed = unsigned_at(from, "seed");
  request.key.record = unsigned_at(from, "record");
  request.key.call = unsigned_at(from, "call");
  const Napi::Value forced = from.Get("forced");
  request.is_forced = !forced.IsUndefined();
  if (request.is_forced) request.forced = integers(forced, "forced");
  request.top_alternatives = static_cast<int32_t>(integer_at(from, "topAlternatives"));
  request.score_from = integer_at(from, "scoreFrom");
  return request;
}

Napi::Object events_to_js(Napi::Env env, const std::vector<GenerationEvent>& events) {
  using Event = GenerationEvent;
  Napi::Object batch = Napi::Object::New(env);
  batch.Set("requests", column<Napi::Float64Array>(env, events, [](const Event& event) { return static_cast<double>(event.request); }));
  batch.Set("tokens", column<Napi::Int32Array>(env, events, [](const Event& event) { return event.token; }));
  batch.Set("logprobs", column<Napi::Float32Array>(env, events, [](const Event& event) { return event.logprob; }));
  batch.Set("sampledLogprobs", column<Napi::Float32Array>(env, events, [](const Event& event) { return event.sampled_logprob; }));
  batch.Set("truncated", column<Napi::Uint8Array>(env, events, [](const Event& event) { return static_cast<uint8_t>(event.is_truncated); }));
  batch.Set("versions", column<Napi::Int32Array>(env, events, [](const Event& event) { return event.version; }));
  batch.Set("cachedTokens", column<Napi::Int32Array>(env, events, [](const Event& event) { return event.cached_tokens; }));
  batch.Set("finishes", column<Napi::Int32Array>(env, events, [](const Event& event) { return static_cast<int32_t>(event.finish); }));
  batch.Set("stopIds", column<Napi::Int32Array>(env, events, [](const Event& event) { return event.cause.id; }));
  batch.Set("stopStrings", column<Napi::Int32Array>(env, events, [](const Event& event) { return event.cause.string_index; }));
  Napi::Array more = Napi::Array::New(env);
  uint32_t count = 0;
  for (size_t i = 0; i < events.size(); i++) {
    const Event& event = events[i];
    const bool has_score = !event.score_logprobs.empty();
    const bool has_error = event.finish == Finish::error;
    if (event.alternative_ids.empty() && !has_score && !has_error) continue;
    Napi::Object item = Napi::Object::New(env);
    item.Set("index", static_cast<double>(i));
    if (!event.alternative_ids.empty()) {
      item.Set("alternativeIds", to_integers(env, event.alternative_ids));
      item.Set("alternativeLogprobs", to_array(env, event.alternative_logprobs));
    }
    if (has_score) {
      item.Set("scoreLogprobs", to_array(env, event.score_logprobs));
      item.Set("scoreEntropies", to_array(env, event.score_entropies));
    }
    if (has_error) item.Set("error", to_error(env, Failure{event.error_code, event.error_sentence, event.error_next}).Value());
    more.Set(count++, item);
  }
  batch.Set("more", more);
  return batch;
}

}  // namespace rollscope::binding

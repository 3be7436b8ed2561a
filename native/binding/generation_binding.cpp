// NativeGenerator: the thread border between JavaScript and the generation service.
#include "generation_binding.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "generation_events.h"
#include "model_binding.h"
#include "promise_job.h"
#include "read_value.h"

namespace rollscope::binding {

/// What one call of the thread-safe function carries: events of an iteration, or the end of a command.
struct GenerationBinding::Delivery {
  GenerationBinding* binding = nullptr;
  std::vector<GenerationEvent> events;
  int64_t command = -1;
  int64_t result = 0;
  std::optional<Failure> failure;
};

namespace {

TokenBytes read_token_bytes(const Napi::Object& options) {
  if (options.Get("tokenBytes").IsUndefined()) return {};
  return TokenBytes(bytes(property(options, "tokenBytes"), "tokenBytes"),
                    elements<Napi::Uint32Array, uint32_t>(property(options, "tokenOffsets"), "tokenOffsets"));
}

}  // namespace

Napi::Function GenerationBinding::define(Napi::Env env) {
  return DefineClass(env, "NativeGenerator",
                     {
                         InstanceMethod("submit", &GenerationBinding::submit),
                         InstanceMethod("abort", &GenerationBinding::abort),
                         InstanceMethod("pause", &GenerationBinding::pause),
                         InstanceMethod("resume", &GenerationBinding::resume),
                         InstanceMethod("updateWeights", &GenerationBinding::update_weights),
                         InstanceMethod("releaseMemory", &GenerationBinding::release_memory),
                         InstanceMethod("restoreMemory", &GenerationBinding::restore_memory),
                         InstanceMethod("health", &GenerationBinding::health),
                         InstanceMethod("dispose", &GenerationBinding::dispose),
                     });
}

GenerationBinding::GenerationBinding(const Napi::CallbackInfo& info) : Napi::ObjectWrap<GenerationBinding>(info) {
  const Napi::Env env = info.Env();
  ModelBinding& model = model_binding(info[0]);
  const Napi::Object from = info[1].As<Napi::Object>();
  GeneratorOptions options;
  options.cache_bytes = integer_at(from, "cacheBytes");
  options.limits.running = integer_at(from, "running");
  options.limits.rows_per_iteration = integer_at(from, "rowsPerIteration");
  options.limits.least_prompt_rows = std::min(options.limits.least_prompt_rows, options.limits.rows_per_iteration);
  compute_ = model.compute_owner();
  wake_ = Napi::ThreadSafeFunction::New(env, info[2].As<Napi::Function>(), "rollscope generation", 0, 1);
  wake_.Unref(env);
  const auto deliver = [this, wake = wake_](std::vector<GenerationEvent> events) {
    auto* delivery = new Delivery{this, std::move(events), -1, 0, {}};
    const auto call = [](Napi::Env environment, Napi::Function function, Delivery* received) {
      const std::unique_ptr<Delivery> owned(received);
      owned->binding->receive(environment, function, *owned);
    };
    if (wake.NonBlockingCall(delivery, call) != napi_ok) delete delivery;
  };
  // Runs before the hook of the thread-safe function itself, so that the compute thread never calls a dead one.
  napi_add_env_cleanup_hook(env, close_at_exit, this);
  run_now(env, [&] { service_ = GenerationService::create(*compute_, model.model(), options, read_token_bytes(from), deliver); });
}

GenerationBinding::~GenerationBinding() {
  close();
  napi_remove_env_cleanup_hook(Env(), close_at_exit, this);
}

void GenerationBinding::close_at_exit(void* binding) { static_cast<GenerationBinding*>(binding)->close(); }

void GenerationBinding::close() {
  if (service_ == nullptr) return;
  service_->close();
  service_.reset();
  wake_.Abort();
}

GenerationService& GenerationBinding::service(Napi::Env env) const {
  if (service_ == nullptr) {
    throw to_error(env, Failure{"ENGINE_REQUEST_INVALID", "The inference engine was disposed.", "Open it again before using it."});
  }
  return *service_;
}

void GenerationBinding::expect(Napi::Env env, int64_t change) {
  const int64_t before = expected_;
  expected_ += change;
  if (before == 0 && expected_ > 0) {
    wake_.Ref(env);
    Ref();
  } else if (before > 0 && expected_ == 0) {
    wake_.Unref(env);
    Unref();
  }
}

/// submit(ids, requests): they start together; answers come through `deliver`.
void GenerationBinding::submit(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  GenerationService& target = service(env);
  const auto ids = info[0].As<Napi::Array>();
  const auto requests = info[1].As<Napi::Array>();
  std::vector<std::pair<int64_t, GenerationRequest>> batch;
  for (uint32_t i = 0; i < ids.Length(); i++) {
    batch.emplace_back(ids.Get(i).ToNumber().Int64Value(), read_request(requests.Get(i).As<Napi::Object>()));
  }
  expect(env, static_cast<int64_t>(batch.size()));
  target.submit(std::move(batch));
}

void GenerationBinding::abort(const Napi::CallbackInfo& info) { service(info.Env()).abort(info[0].ToNumber().Int64Value()); }

Napi::Value GenerationBinding::promise(Napi::Env env, const std::function<void(GenerationService&, GenerationService::Done)>& start) {
  GenerationService& target = service(env);
  const int64_t command = next_command_++;
  const auto deferred = Napi::Promise::Deferred::New(env);
  commands_.emplace(command, deferred);
  expect(env, 1);
  start(target, [this, wake = wake_, command](int64_t result, const EngineError* error) {
    auto* delivery = new Delivery{this, {}, command, result, {}};
    if (error != nullptr) delivery->failure = Failure{error->code(), error->what(), error->next()};
    const auto call = [](Napi::Env environment, Napi::Function function, Delivery* received) {
      const std::unique_ptr<Delivery> owned(received);
      owned->binding->receive(environment, function, *owned);
    };
    if (wake.NonBlockingCall(delivery, call) != napi_ok) delete delivery;
  });
  return deferred.Promise();
}

void GenerationBinding::receive(Napi::Env env, Napi::Function deliver, Delivery& delivery) {
  // After dispose() only the calls that were already queued arrive, and nobody waits for them.
  if (env == nullptr || service_ == nullptr) return;
  if (delivery.command < 0) {
    int64_t ended = 0;
    for (const GenerationEvent& event : delivery.events) ended += event.finish != Finish::none ? 1 : 0;
    deliver.Call({events_to_js(env, delivery.events)});
    expect(env, -ended);
    return;
  }
  const auto found = commands_.find(delivery.command);
  if (found == commands_.end()) return;
  const Napi::Promise::Deferred deferred = found->second;
  commands_.erase(found);
  if (delivery.failure) {
    deferred.Reject(to_error(env, *delivery.failure).Value());
  } else {
    deferred.Resolve(Napi::Number::New(env, static_cast<double>(delivery.result)));
  }
  expect(env, -1);
}

/// pause("wait" | "hold" | "abort"): Promise<number>; the number means nothing.
Napi::Value GenerationBinding::pause(const Napi::CallbackInfo& info) {
  const std::string name = info[0].ToString().Utf8Value();
  const PauseMode mode = name == "wait" ? PauseMode::wait : name == "hold" ? PauseMode::hold : PauseMode::abort;
  return promise(info.Env(), [mode](GenerationService& target, GenerationService::Done done) { target.pause(mode, std::move(done)); });
}

Napi::Value GenerationBinding::resume(const Napi::CallbackInfo& info) {
  return promise(info.Env(), [](GenerationService& target, GenerationService::Done done) { target.resume(std::move(done)); });
}

/// updateWeights(): Promise<number>, the version now served.
Napi::Value GenerationBinding::update_weights(const Napi::CallbackInfo& info) {
  return promise(info.Env(), [](GenerationService& target, GenerationService::Done done) { target.update_weights(std::move(done)); });
}

Napi::Value GenerationBinding::release_memory(const Napi::CallbackInfo& info) {
  return promise(info.Env(), [](GenerationService& target, GenerationService::Done done) { target.release_memory(std::move(done)); });
}

Napi::Value GenerationBinding::restore_memory(const Napi::CallbackInfo& info) {
  return promise(info.Env(), [](GenerationService& target, GenerationService::Done done) { target.restore_memory(std::move(done)); });
}

Napi::Value GenerationBinding::health(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const GeneratorHealth now = service(env).health();
  Napi::Object result = Napi::Object::New(env);
  result.Set("running", static_cast<double>(now.running));
  result.Set("queued", static_cast<double>(now.queued));
  result.Set("version", static_cast<double>(now.version));
  result.Set("paused", now.is_paused);
  result.Set("released", now.is_released);
  result.Set("cachedTokens", static_cast<double>(now.cached_tokens));
  result.Set("cacheBlocks", static_cast<double>(now.cache_blocks));
  result.Set("cacheCapacity", static_cast<double>(now.cache_capacity));
  result.Set("prefilledTokens", static_cast<double>(now.counts.prefilled));
  result.Set("decodedTokens", static_cast<double>(now.counts.decoded));
  result.Set("evictedBlocks", static_cast<double>(now.counts.evicted));
  result.Set("preemptions", static_cast<double>(now.counts.preempted));
  return result;
}

/// Ends at once; awaited promises reject, streams are ended by the caller.
void GenerationBinding::dispose(const Napi::CallbackInfo& info) {
  if (service_ == nullptr) return;
  const Napi::Env env = info.Env();
  auto commands = std::exchange(commands_, {});
  const bool was_expecting = expected_ > 0;
  expected_ = 0;
  close();
  for (auto& [id, deferred] : commands) {
    deferred.Reject(to_error(env, Failure{"ENGINE_CANCELLED", "The inference engine was disposed.", "Start it again when it is wanted."}).Value());
  }
  if (was_expecting) Unref();
}

void register_generation(Napi::Env env, Napi::Object exports) { exports.Set("NativeGenerator", GenerationBinding::define(env)); }

}  // namespace rollscope::binding

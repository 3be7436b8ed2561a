// The JavaScript class that generates: requests in, one call per iteration out.
#pragma once

#include <napi.h>

#include <memory>
#include <unordered_map>

#include "addon_state.h"
#include "generation/generation_service.h"

namespace rollscope::binding {

class GenerationBinding : public Napi::ObjectWrap<GenerationBinding> {
 public:
  /// new NativeGenerator(model, options, deliver): `deliver(batch)` gets what each iteration yields, see generation_events.h.
  explicit GenerationBinding(const Napi::CallbackInfo& info);
  ~GenerationBinding() override;
  static Napi::Function define(Napi::Env env);

 private:
  struct Delivery;

  void submit(const Napi::CallbackInfo& info);
  void abort(const Napi::CallbackInfo& info);
  Napi::Value pause(const Napi::CallbackInfo& info);
  Napi::Value resume(const Napi::CallbackInfo& info);
  Napi::Value update_weights(const Napi::CallbackInfo& info);
  Napi::Value release_memory(const Napi::CallbackInfo& info);
  Napi::Value restore_memory(const Napi::CallbackInfo& info);
  Napi::Value health(const Napi::CallbackInfo& info);
  void dispose(const Napi::CallbackInfo& info);

  /// A promise that `done` settles.
  Napi::Value promise(Napi::Env env, const std::function<void(GenerationService&, GenerationService::Done)>& start);
  GenerationService& service(Napi::Env env) const;
  /// The event loop stays alive exactly while something is awaited.
  void expect(Napi::Env env, int64_t change);
  void close();
  static void close_at_exit(void* binding);
  void receive(Napi::Env env, Napi::Function deliver, Delivery& delivery);

  std::shared_ptr<ComputeThread> compute_;
  std::shared_ptr<GenerationService> service_;
  Napi::ThreadSafeFunction wake_;
  int64_t expected_ = 0;  // requests and commands without an answer
  int64_t next_command_ = 0;
  std::unordered_map<int64_t, Napi::Promise::Deferred> commands_;
};

/// Adds the class NativeGenerator.
void register_generation(Napi::Env env, Napi::Object exports);

}  // namespace rollscope::binding

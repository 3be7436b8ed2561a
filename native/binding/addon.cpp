// Entry of the native addon: what JavaScript finds in it. Typed in index.d.ts.
#include <napi.h>

#include <omp.h>

#include "addon_state.h"
#include "generation_binding.h"
#include "kernels.h"
#include "model_binding.h"
#include "trainer_binding.h"

namespace rollscope::binding {

namespace {

/// cpu(): { kernels, processors }.
Napi::Value cpu(const Napi::CallbackInfo& info) {
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("kernels", kernels().name);
  result.Set("processors", omp_get_num_procs());
  return result;
}

/// stop(): ends the process's compute thread. What was waiting never settles.
void stop(const Napi::CallbackInfo& info) {
  const std::shared_ptr<ComputeThread>& compute = addon_state(info.Env()).compute;
  if (compute != nullptr) compute->stop();
}

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
  auto* state = new AddonState();
  env.SetInstanceData<AddonState>(state);
  const auto keep = [&](const char* name, Napi::Function constructor, Napi::FunctionReference& reference) {
    reference = Napi::Persistent(constructor);
    exports.Set(name, constructor);
  };
  keep("CancelToken", CancelBinding::define(env), state->cancel_class);
  state->model_class = Napi::Persistent(ModelBinding::define(env));
  exports.Set("describe", Napi::Function::New(env, describe));
  exports.Set("loadModel", Napi::Function::New(env, load_model));
  exports.Set("stop", Napi::Function::New(env, stop));
  exports.Set("cpu", Napi::Function::New(env, cpu));
  keep("NativeTrainer", TrainerBinding::define(env), state->trainer_class);
  register_generation(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(rollscope, initialise)

}  // namespace rollscope::binding

// The JavaScript class that trains a model.
#pragma once

#include <napi.h>

#include <memory>

#include "model_binding.h"
#include "training/trainer.h"

namespace rollscope::binding {

class TrainerBinding : public Napi::ObjectWrap<TrainerBinding> {
 public:
  /// new NativeTrainer(model, { memoryBytes, keptLogitsBytes })
  explicit TrainerBinding(const Napi::CallbackInfo& info);
  static Napi::Function define(Napi::Env env);

 private:
  Napi::Value forward(const Napi::CallbackInfo& info);
  Napi::Value forward_for_gradient(const Napi::CallbackInfo& info);
  Napi::Value backward(const Napi::CallbackInfo& info);
  Napi::Value gradient(const Napi::CallbackInfo& info);
  Napi::Value step(const Napi::CallbackInfo& info);
  Napi::Value discard(const Napi::CallbackInfo& info);
  Napi::Value plan(const Napi::CallbackInfo& info);
  Napi::Value max_tokens(const Napi::CallbackInfo& info);
  Napi::Value read_tensor(const Napi::CallbackInfo& info);
  Napi::Value write_moment(const Napi::CallbackInfo& info);
  Napi::Value load_moments(const Napi::CallbackInfo& info);
  Napi::Value clear_moments(const Napi::CallbackInfo& info);
  Napi::Value optimizer_steps(const Napi::CallbackInfo& info);
  void dispose(const Napi::CallbackInfo& info);

  /// Throws ENGINE_REQUEST_INVALID after dispose().
  std::shared_ptr<Trainer> trainer(Napi::Env env) const;

  std::shared_ptr<Trainer> trainer_;
  std::shared_ptr<ComputeThread> compute_;
};

}  // namespace rollscope::binding

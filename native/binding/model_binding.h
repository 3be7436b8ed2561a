// The JavaScript class that stands for a loaded model, shared by trainer and generator.
#pragma once

#include <napi.h>

#include <memory>

#include "addon_state.h"
#include "cancel_token.h"
#include "model.h"

namespace rollscope::binding {

/// `new CancelToken()` with `cancel()`.
class CancelBinding : public Napi::ObjectWrap<CancelBinding> {
 public:
  explicit CancelBinding(const Napi::CallbackInfo& info) : Napi::ObjectWrap<CancelBinding>(info) {}
  static Napi::Function define(Napi::Env env);
  const CancelToken& token() const { return token_; }

 private:
  void cancel(const Napi::CallbackInfo&) { token_.raise(); }
  CancelToken token_;
};

/// The token of a value that may be undefined.
CancelToken cancel_token(const Napi::Value& value);

class ModelBinding : public Napi::ObjectWrap<ModelBinding> {
 public:
  /// Constructed by loadModel only, around an External<std::shared_ptr<Model>>.
  explicit ModelBinding(const Napi::CallbackInfo& info);
  static Napi::Function define(Napi::Env env);

  const std::shared_ptr<Model>& model() const { return model_; }
  ComputeThread& compute() const { return *compute_; }
  const std::shared_ptr<ComputeThread>& compute_owner() const { return compute_; }

 private:
  Napi::Value version(const Napi::CallbackInfo& info);
  Napi::Value threads(const Napi::CallbackInfo& info);
  Napi::Value tensors(const Napi::CallbackInfo& info);
  Napi::Value read_tensor(const Napi::CallbackInfo& info);
  Napi::Value write_tensor(const Napi::CallbackInfo& info);
  Napi::Value reload(const Napi::CallbackInfo& info);
  Napi::Value snapshot(const Napi::CallbackInfo& info);
  Napi::Value release(const Napi::CallbackInfo& info);
  Napi::Value write_weights(const Napi::CallbackInfo& info);
  void dispose(const Napi::CallbackInfo& info);

  std::shared_ptr<Model> model_;
  std::shared_ptr<ComputeThread> compute_;
};

/// The model of a JavaScript NativeModel; throws a TypeError on anything else and ENGINE_REQUEST_INVALID after dispose().
ModelBinding& model_binding(const Napi::Value& value);

/// describe(config): the tensors of such a model.
Napi::Value describe(const Napi::CallbackInfo& info);

/// loadModel(spec): Promise<NativeModel>.
Napi::Value load_model(const Napi::CallbackInfo& info);

}  // namespace rollscope::binding

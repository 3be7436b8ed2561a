// What the addon holds for one JavaScript environment. The compute thread inside is shared by all environments of the process.
#pragma once

#include <napi.h>

#include <memory>

#include "compute_thread.h"

namespace rollscope::binding {

/// The process's compute thread; made with `threads` when none exists yet, ended with its last owner.
std::shared_ptr<ComputeThread> shared_compute_thread(int threads);

struct AddonState {
  std::shared_ptr<ComputeThread> compute;  // empty until the first model is loaded
  Napi::FunctionReference model_class;
  Napi::FunctionReference trainer_class;
  Napi::FunctionReference cancel_class;
};

inline AddonState& addon_state(Napi::Env env) { return *env.GetInstanceData<AddonState>(); }

}  // namespace rollscope::binding

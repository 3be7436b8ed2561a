// Requests from JavaScript and events to it, as plain data.
#pragma once

#include <napi.h>

#include <vector>

#include "generation/generation_request.h"

namespace rollscope::binding {

GenerationRequest read_request(const Napi::Object& from);

/// One object of parallel typed arrays for all events, plus `more`: one entry for each event that carries alternatives, a score
/// or an error.
Napi::Object events_to_js(Napi::Env env, const std::vector<GenerationEvent>& events);

}  // namespace rollscope::binding

// Batches, outputs and scalars between JavaScript and the trainer.
#pragma once

#include <napi.h>

#include "training/trainer.h"

namespace rollscope::binding {

/// { tokens, positions, nodes: Int32Array of start, end, parent triples, temperature, wanted, routing? }
Batch read_batch(const Napi::Value& value);
Outputs read_outputs(const Napi::Value& value);
Cotangents read_cotangents(const Napi::Value& value);
StepOptions read_step(const Napi::Value& value);
Napi::Object to_scalars(Napi::Env env, const Scalars& scalars);

}  // namespace rollscope::binding

// The conversions of batch_values.h.
#include "batch_values.h"

#include <limits>

#include "read_value.h"

namespace rollscope::binding {

Batch read_batch(const Napi::Value& value) {
  const Napi::Object from = value.As<Napi::Object>();
  Batch batch;
  batch.tokens = integers(property(from, "tokens"), "tokens");
  batch.positions = integers(property(from, "positions"), "positions");
  const std::vector<int32_t> nodes = integers(property(from, "nodes"), "nodes");
  for (size_t i = 0; i + 2 < nodes.size(); i += 3) batch.nodes.push_back({nodes[i], nodes[i + 1], nodes[i + 2]});
  batch.temperature = floats(property(from, "temperature"), "temperature");
  batch.wanted = bytes(property(from, "wanted"), "wanted");
  const Napi::Value routing = from.Get("routing");
  if (!routing.IsUndefined()) batch.routing = shorts(routing, "routing");
  return batch;
}

Outputs read_outputs(const Napi::Value& value) {
  const Napi::Object from = value.As<Napi::Object>();
  return {flag_at(from, "logprob"), flag_at(from, "entropy"), flag_at(from, "value")};
}

Cotangents read_cotangents(const Napi::Value& value) {
  const Napi::Object from = value.As<Napi::Object>();
  const auto optional = [&](const char* name) {
    const Napi::Value given = from.Get(name);
    return given.IsUndefined() ? std::vector<float>() : floats(given, name);
  };
  return {optional("logprob"), optional("entropy"), optional("value")};
}

StepOptions read_step(const Napi::Value& value) {
  const Napi::Object from = value.As<Napi::Object>();
  StepOptions options{};
  options.learning_rate = number_at(from, "lr");
  options.beta1 = number_at(from, "beta1");
  options.beta2 = number_at(from, "beta2");
  options.epsilon = number_at(from, "eps");
  options.weight_decay = number_at(from, "weightDecay");
  options.decay_all = flag_at(from, "decayAll");
  const Napi::Value limit = from.Get("maxGradNorm");
  options.max_gradient_norm = limit.IsNumber() ? limit.As<Napi::Number>().DoubleValue() : std::numeric_limits<double>::infinity();
  return options;
}

Napi::Object to_scalars(Napi::Env env, const Scalars& scalars) {
  Napi::Object result = Napi::Object::New(env);
  if (!scalars.logprob.empty()) result.Set("logprob", to_array(env, scalars.logprob));
  if (!scalars.entropy.empty()) result.Set("entropy", to_array(env, scalars.entropy));
  if (!scalars.value.empty()) result.Set("value", to_array(env, scalars.value));
  return result;
}

}  // namespace rollscope::binding

// Loading, reading and writing of a model's tensors from JavaScript.
#include "model_binding.h"

#include <cstring>
#include <string>
#include <vector>

#include "kernels.h"
#include "promise_job.h"
#include "read_value.h"
#include "tensor_files.h"
#include "tensor_sources.h"

namespace rollscope::binding {

namespace {

ModelConfig read_config(const Napi::Object& from) {
  ModelConfig config;
  config.architecture = text_at(from, "architecture");
  config.vocabulary = integer_at(from, "vocabulary");
  config.layers = integer_at(from, "layers");
  config.hidden = integer_at(from, "hidden");
  config.intermediate = integer_at(from, "intermediate");
  config.heads = integer_at(from, "heads");
  config.kv_heads = integer_at(from, "kvHeads");
  config.head_dim = integer_at(from, "headDim");
  config.max_positions = integer_at(from, "maxPositions");
  config.rms_epsilon = static_cast<float>(number_at(from, "rmsEpsilon"));
  config.tied_head = flag_at(from, "tiedHead");
  config.attention_bias = flag_at(from, "attentionBias");
  config.output_bias = flag_at(from, "outputBias");
  config.query_key_norm = flag_at(from, "queryKeyNorm");
  config.value_head = flag_at(from, "valueHead");
  config.inverse_frequencies = doubles(property(from, "inverseFrequencies"), "inverseFrequencies");
  config.rope_attention_scale = static_cast<float>(number_at(from, "ropeAttentionScale"));
  const Napi::Object mixture = object_at(from, "mixture");
  config.mixture.experts = integer_at(mixture, "experts");
  config.mixture.experts_per_token = integer_at(mixture, "expertsPerToken");
  config.mixture.intermediate = integer_at(mixture, "intermediate");
  config.mixture.normalise_top_k = flag_at(mixture, "normaliseTopK");
  config.mixture.is_mixture = bytes(property(mixture, "isMixture"), "isMixture");
  return config;
}

/// { name, shape, matrix }[] in the order of the arena.
Napi::Array to_tensors(Napi::Env env, const ParameterLayout& layout) {
  Napi::Array result = Napi::Array::New(env);
  uint32_t count = 0;
  for (const TensorSlot& slot : layout.slots()) {
    Napi::Object item = Napi::Object::New(env);
    Napi::Array shape = Napi::Array::New(env, slot.shape.size());
    for (size_t axis = 0; axis < slot.shape.size(); axis++) shape.Set(static_cast<uint32_t>(axis), static_cast<double>(slot.shape[axis]));
    item.Set("name", slot.name);
    item.Set("shape", shape);
    item.Set("matrix", slot.is_matrix);
    result.Set(count++, item);
  }
  return result;
}

const TensorSlot& slot_of(const Model& model, const std::string& name) {
  const TensorSlot* slot = model.layout().find(name);
  if (slot == nullptr) {
    throw EngineError("ENGINE_TENSOR_MISSING", "The model has no tensor named " + name + ".", "Ask tensors() for the names.");
  }
  return *slot;
}

/// Checks with this model's own shapes what a row of a product depends on.
void verify_products(MatrixProducts& products, const Model& model) {
  const ModelConfig& config = model.config();
  const ParameterLayout& layout = model.layout();
  const float* weights = model.weights();
  for (int64_t index = 0; index < config.layers; index++) {
    const LayerLayout& layer = layout.layer(index);
    products.verify_row_independence(weights + layer.qkv, config.qkv_width(), config.hidden);
    products.verify_row_independence(weights + layer.output, config.hidden, config.query_width());
    if (layer.gate_up >= 0) {
      products.verify_row_independence(weights + layer.gate_up, 2 * config.intermediate, config.hidden);
      products.verify_row_independence(weights + layer.down, config.hidden, config.intermediate);
    } else {
      products.verify_row_independence(weights + layer.router, config.mixture.experts, config.hidden);
      products.verify_row_independence(weights + layer.expert_gate_up, 2 * config.mixture.intermediate, config.hidden);
      products.verify_row_independence(weights + layer.expert_down, config.hidden, config.mixture.intermediate);
    }
  }
  products.verify_row_independence(weights + layout.head(), config.vocabulary, config.hidden);
}

}  // namespace

Napi::Function CancelBinding::define(Napi::Env env) {
  return DefineClass(env, "CancelToken", {InstanceMethod("cancel", &CancelBinding::cancel)});
}

CancelToken cancel_token(const Napi::Value& value) {
  if (!value.IsObject()) return CancelToken();
  const Napi::Object object = value.As<Napi::Object>();
  if (!object.InstanceOf(addon_state(value.Env()).cancel_class.Value())) throw Napi::TypeError::New(value.Env(), "expected a CancelToken");
  return CancelBinding::Unwrap(object)->token();
}

ModelBinding::ModelBinding(const Napi::CallbackInfo& info) : Napi::ObjectWrap<ModelBinding>(info) {
  if (info.Length() != 1 || !info[0].IsExternal()) throw Napi::TypeError::New(info.Env(), "models come from loadModel");
  model_ = *info[0].As<Napi::External<std::shared_ptr<Model>>>().Data();
  compute_ = addon_state(info.Env()).compute;
}

Napi::Function ModelBinding::define(Napi::Env env) {
  return DefineClass(env, "NativeModel",
                     {
                         InstanceMethod("version", &ModelBinding::version),
                         InstanceMethod("threads", &ModelBinding::threads),
                         InstanceMethod("tensors", &ModelBinding::tensors),
                         InstanceMethod("readTensor", &ModelBinding::read_tensor),
                         InstanceMethod("writeTensor", &ModelBinding::write_tensor),
                         InstanceMethod("reload", &ModelBinding::reload),
                         InstanceMethod("snapshot", &ModelBinding::snapshot),
                         InstanceMethod("release", &ModelBinding::release),
                         InstanceMethod("writeWeights", &ModelBinding::write_weights),
                         InstanceMethod("dispose", &ModelBinding::dispose),
                     });
}

ModelBinding& model_binding(const Napi::Value& value) {
  const Napi::Env env = value.Env();
  if (!value.IsObject() || !value.As<Napi::Object>().InstanceOf(addon_state(env).model_class.Value()))
    throw Napi::TypeError::New(env, "expected a NativeModel");
  ModelBinding& binding = *ModelBinding::Unwrap(value.As<Napi::Object>());
  if (binding.model() == nullptr)
    throw to_error(env, Failure{"ENGINE_REQUEST_INVALID", "The model was disposed.", "Open it again before using it."});
  return binding;
}

Napi::Value ModelBinding::version(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(model_binding(info.This()).model_->version()));
}

Napi::Value ModelBinding::threads(const Napi::CallbackInfo& info) { return Napi::Number::New(info.Env(), compute_->threads()); }

Napi::Value ModelBinding::tensors(const Napi::CallbackInfo& info) {
  return to_tensors(info.Env(), model_binding(info.This()).model_->layout());
}

Napi::Value describe(const Napi::CallbackInfo& info) {
  const ModelConfig config = read_config(info[0].As<Napi::Object>());
  return to_tensors(info.Env(), ParameterLayout(config));
}

/// readTensor(name): Promise<Float32Array>.
Napi::Value ModelBinding::read_tensor(const Napi::CallbackInfo& info) {
  std::shared_ptr<Model> model = model_binding(info.This()).model_;
  std::string name = info[0].ToString().Utf8Value();
  return run_job<std::vector<float>>(
      info.Env(), *compute_,
      [model, name](MatrixProducts&) {
        const TensorSlot& slot = slot_of(*model, name);
        const float* at = model->weights() + slot.offset;
        return std::vector<float>(at, at + slot.size);
      },
      [](Napi::Env env, std::vector<float>&& values) -> Napi::Value { return to_array(env, values); });
}

/// writeTensor(name, values): Promise<void>.
Napi::Value ModelBinding::write_tensor(const Napi::CallbackInfo& info) {
  std::shared_ptr<Model> model = model_binding(info.This()).model_;
  std::string name = info[0].ToString().Utf8Value();
  std::vector<float> values = floats(info[1], "values");
  return run_job<Nothing>(
      info.Env(), *compute_,
      [model, name, values](MatrixProducts&) {
        const TensorSlot& slot = slot_of(*model, name);
        if (static_cast<int64_t>(values.size()) != slot.size) {
          throw EngineError("ENGINE_SHAPE_MISMATCH",
                            "The tensor " + name + " has " + std::to_string(slot.size) + " elements, not " + std::to_string(values.size()) + ".",
                            "Pass exactly as many values.");
        }
        std::memcpy(model->mutable_weights() + slot.offset, values.data(), values.size() * sizeof(float));
        model->weights_changed(model->version());
        return Nothing{};
      },
      finish_nothing);
}

/// reload(files, tensors, version, cancel): Promise<void>. On failure the old weights stay.
Napi::Value ModelBinding::reload(const Napi::CallbackInfo& info) {
  std::shared_ptr<Model> model = model_binding(info.This()).model_;
  std::vector<std::string> files = texts(info[0]);
  std::vector<TensorSource> sources = read_sources(info[1]);
  const int64_t version = info[2].ToNumber().Int64Value();
  const CancelToken cancel = cancel_token(info[3]);
  return run_job<Nothing>(
      info.Env(), *compute_,
      [model, files, sources, version, cancel](MatrixProducts&) {
        Arena fresh(model->layout().size());
        read_tensors(fresh, model->layout(), files, sources, cancel);
        std::memcpy(model->mutable_weights(), fresh.data(), static_cast<size_t>(fresh.size()) * sizeof(float));
        model->weights_changed(version);
        return Nothing{};
      },
      finish_nothing);
}

Napi::Value ModelBinding::snapshot(const Napi::CallbackInfo& info) {
  std::shared_ptr<Model> model = model_binding(info.This()).model_;
  std::string id = info[0].ToString().Utf8Value();
  return run_job<Nothing>(
      info.Env(), *compute_,
      [model, id](MatrixProducts&) {
        model->take_snapshot(id);
        return Nothing{};
      },
      finish_nothing);
}

Napi::Value ModelBinding::release(const Napi::CallbackInfo& info) {
  std::shared_ptr<Model> model = model_binding(info.This()).model_;
  std::string id = info[0].ToString().Utf8Value();
  return run_job<Nothing>(
      info.Env(), *compute_,
      [model, id](MatrixProducts&) {
        model->release_snapshot(id);
        return Nothing{};
      },
      finish_nothing);
}

/// writeWeights(path, header, names, cancel): Promise<void>. The header's tensors must lie in the order of the names.
Napi::Value ModelBinding::write_weights(const Napi::CallbackInfo& info) {
  std::shared_ptr<Model> model = model_binding(info.This()).model_;
  std::string path = info[0].ToString().Utf8Value();
  const std::vector<uint8_t> header = bytes(info[1], "header");
  std::vector<std::string> names = texts(info[2]);
  const CancelToken cancel = cancel_token(info[3]);
  return run_job<Nothing>(
      info.Env(), *compute_,
      [model, path, header, names, cancel](MatrixProducts&) {
        std::vector<TensorPart> parts;
        for (const std::string& name : names) {
          const TensorSlot& slot = slot_of(*model, name);
          parts.push_back({model->weights() + slot.offset, slot.size});
        }
        write_tensors(path, std::string(header.begin(), header.end()), parts, cancel);
        return Nothing{};
      },
      finish_nothing);
}

/// Frees the weights once running jobs and trainers have let go of them.
void ModelBinding::dispose(const Napi::CallbackInfo&) { model_.reset(); }

Napi::Value load_model(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object spec = info[0].As<Napi::Object>();
  AddonState& state = addon_state(env);
  if (state.compute == nullptr) state.compute = shared_compute_thread(static_cast<int>(integer_at(spec, "threads")));
  ModelConfig config = read_config(object_at(spec, "config"));
  std::vector<std::string> files = texts(property(spec, "files"));
  std::vector<TensorSource> sources = read_sources(property(spec, "tensors"));
  const int64_t version = integer_at(spec, "version");
  const CancelToken cancel = cancel_token(spec.Get("cancel"));
  return run_job<std::shared_ptr<Model>>(
      env, *state.compute,
      [config, files, sources, version, cancel](MatrixProducts& products) {
        auto model = std::make_shared<Model>(config);
        Arena& arena = model->arena();
        read_tensors(arena, model->layout(), files, sources, cancel);
        model->weights_changed(version);
        verify_products(products, *model);
        return model;
      },
      [](Napi::Env environment, std::shared_ptr<Model>&& model) -> Napi::Value {
        return addon_state(environment).model_class.New({Napi::External<std::shared_ptr<Model>>::New(environment, &model)});
      });
}

}  // namespace rollscope::binding

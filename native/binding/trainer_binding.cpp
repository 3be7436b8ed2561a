// The trainer's calls as promises.
#include "trainer_binding.h"

#include <string>
#include <vector>

#include "batch_values.h"
#include "promise_job.h"
#include "read_value.h"
#include "tensor_files.h"
#include "tensor_sources.h"

namespace rollscope::binding {

namespace {

/// Which arena a name means.
const Arena& arena_of(const Trainer& trainer, const std::string& which) {
  if (which == "gradient") return trainer.gradient();
  if (which == "firstMoment") return trainer.first_moment();
  if (which == "secondMoment") return trainer.second_moment();
  throw EngineError("ENGINE_REQUEST_INVALID", "There is no arena named " + which + ".", "Ask for gradient, firstMoment or secondMoment.");
}

const TensorSlot& slot_of(const Trainer& trainer, const std::string& name) {
  const TensorSlot* slot = trainer.model()->layout().find(name);
  if (slot == nullptr) throw EngineError("ENGINE_TENSOR_MISSING", "The model has no tensor named " + name + ".", "Ask tensors() for the names.");
  return *slot;
}

/// The policy's weights, or those of the snapshot of that name.
const float* weights_of(const Model& model, const std::string& snapshot) {
  return snapshot.empty() ? model.weights() : model.snapshot(snapshot);
}

}  // namespace

TrainerBinding::TrainerBinding(const Napi::CallbackInfo& info) : Napi::ObjectWrap<TrainerBinding>(info) {
  ModelBinding& model = model_binding(info[0]);
  const Napi::Object limits = info[1].As<Napi::Object>();
  compute_ = model.compute_owner();
  trainer_ = std::make_shared<Trainer>(model.model(), TrainerLimits{integer_at(limits, "memoryBytes"), integer_at(limits, "keptLogitsBytes")});
}

Napi::Function TrainerBinding::define(Napi::Env env) {
  return DefineClass(env, "NativeTrainer",
                     {
                         InstanceMethod("forward", &TrainerBinding::forward),
                         InstanceMethod("forwardForGradient", &TrainerBinding::forward_for_gradient),
                         InstanceMethod("backward", &TrainerBinding::backward),
                         InstanceMethod("gradient", &TrainerBinding::gradient),
                         InstanceMethod("step", &TrainerBinding::step),
                         InstanceMethod("discard", &TrainerBinding::discard),
                         InstanceMethod("plan", &TrainerBinding::plan),
                         InstanceMethod("maxTokens", &TrainerBinding::max_tokens),
                         InstanceMethod("readTensor", &TrainerBinding::read_tensor),
                         InstanceMethod("writeMoment", &TrainerBinding::write_moment),
                         InstanceMethod("loadMoments", &TrainerBinding::load_moments),
                         InstanceMethod("clearMoments", &TrainerBinding::clear_moments),
                         InstanceMethod("optimizerSteps", &TrainerBinding::optimizer_steps),
                         InstanceMethod("dispose", &TrainerBinding::dispose),
                     });
}

std::shared_ptr<Trainer> TrainerBinding::trainer(Napi::Env env) const {
  if (trainer_ == nullptr)
    throw to_error(env, Failure{"ENGINE_REQUEST_INVALID", "The training engine was disposed.", "Open it again before using it."});
  return trainer_;
}

/// forward(batch, want, { snapshot?, recordRouting? }, cancel?): Promise<Scalars & { experts?, mix? }>
Napi::Value TrainerBinding::forward(const Napi::CallbackInfo& info) {
  struct Result {
    Scalars scalars;
    RecordedRouting routing;
  };
  std::shared_ptr<Trainer> trainer = this->trainer(info.Env());
  const Batch batch = read_batch(info[0]);
  const Outputs want = read_outputs(info[1]);
  const Napi::Object options = info[2].As<Napi::Object>();
  const std::string snapshot = options.Get("snapshot").IsString() ? text_at(options, "snapshot") : std::string();
  const bool record = options.Get("recordRouting").ToBoolean().Value();
  const CancelToken cancel = cancel_token(info[3]);
  return run_job<Result>(
      info.Env(), *compute_,
      [trainer, batch, want, snapshot, record, cancel](MatrixProducts& products) {
        Result result;
        result.scalars = trainer->forward(products, batch, want, weights_of(*trainer->model(), snapshot), cancel, record ? &result.routing : nullptr);
        return result;
      },
      [record](Napi::Env env, Result&& result) -> Napi::Value {
        Napi::Object object = to_scalars(env, result.scalars);
        if (record) {
          Napi::Int16Array experts = Napi::Int16Array::New(env, result.routing.experts.size());
          std::copy(result.routing.experts.begin(), result.routing.experts.end(), experts.Data());
          object.Set("experts", experts);
          object.Set("mix", to_array(env, result.routing.weights));
        }
        return object;
      });
}

/// forwardForGradient(batch, want, cancel?): Promise<Scalars>
Napi::Value TrainerBinding::forward_for_gradient(const Napi::CallbackInfo& info) {
  std::shared_ptr<Trainer> trainer = this->trainer(info.Env());
  const Batch batch = read_batch(info[0]);
  const Outputs want = read_outputs(info[1]);
  const CancelToken cancel = cancel_token(info[2]);
  return run_job<Scalars>(
      info.Env(), *compute_,
      [trainer, batch, want, cancel](MatrixProducts& products) { return trainer->forward_for_gradient(products, batch, want, cancel); },
      [](Napi::Env env, Scalars&& scalars) -> Napi::Value { return to_scalars(env, scalars); });
}

/// backward(cotangents, cancel?): Promise<void>
Napi::Value TrainerBinding::backward(const Napi::CallbackInfo& info) {
  std::shared_ptr<Trainer> trainer = this->trainer(info.Env());
  const Cotangents cotangents = read_cotangents(info[0]);
  const CancelToken cancel = cancel_token(info[1]);
  return run_job<Nothing>(
      info.Env(), *compute_,
      [trainer, cotangents, cancel](MatrixProducts& products) {
        trainer->backward(products, cotangents, cancel);
        return Nothing{};
      },
      finish_nothing);
}

/// gradient(): Promise<{ norm, finite }>
Napi::Value TrainerBinding::gradient(const Napi::CallbackInfo& info) {
  std::shared_ptr<Trainer> trainer = this->trainer(info.Env());
  return run_job<GradientNorm>(
      info.Env(), *compute_, [trainer](MatrixProducts&) { return trainer->gradient_norm(); },
      [](Napi::Env env, GradientNorm&& gradient) -> Napi::Value {
        Napi::Object result = Napi::Object::New(env);
        result.Set("norm", gradient.norm);
        result.Set("finite", gradient.finite);
        return result;
      });
}

/// step(options): Promise<number>, the new version
Napi::Value TrainerBinding::step(const Napi::CallbackInfo& info) {
  std::shared_ptr<Trainer> trainer = this->trainer(info.Env());
  const StepOptions options = read_step(info[0]);
  return run_job<int64_t>(
      info.Env(), *compute_, [trainer, options](MatrixProducts&) { return trainer->step(options); },
      [](Napi::Env env, int64_t&& version) -> Napi::Value { return Napi::Number::New(env, static_cast<double>(version)); });
}

Napi::Value TrainerBinding::discard(const Napi::CallbackInfo& info) {
  std::shared_ptr<Trainer> trainer = this->trainer(info.Env());
  return run_job<Nothing>(
      info.Env(), *compute_,
      [trainer](MatrixProducts&) {
        trainer->discard();
        return Nothing{};
      },
      finish_nothing);
}

/// plan(tokens): Promise<MemoryPlan> for a gradient pass of so many tokens in rows of one node, all wanted.
Napi::Value TrainerBinding::plan(const Napi::CallbackInfo& info) {
  std::shared_ptr<Trainer> trainer = this->trainer(info.Env());
  const int64_t tokens = info[0].ToNumber().Int64Value();
  return run_job<MemoryPlan>(
      info.Env(), *compute_,
      [trainer, tokens](MatrixProducts& products) { return trainer->plan(tokens, tokens + 64, tokens, products.threads(), true); },
      [](Napi::Env env, MemoryPlan&& plan) -> Napi::Value {
        Napi::Object result = Napi::Object::New(env);
        result.Set("fixedBytes", static_cast<double>(plan.fixed_bytes));
        result.Set("activationBytes", static_cast<double>(plan.activation_bytes));
        result.Set("checkpointedLayers", static_cast<double>(plan.checkpointed_layers));
        result.Set("keepsLogits", plan.keeps_logits);
        return result;
      });
}

/// maxTokens(): number
Napi::Value TrainerBinding::max_tokens(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(trainer(info.Env())->max_tokens(compute_->threads())));
}

/// readTensor(name, "gradient" | "firstMoment" | "secondMoment"): Promise<Float32Array>; zeros where nothing was accumulated yet.
Napi::Value TrainerBinding::read_tensor(const Napi::CallbackInfo& info) {
  std::shared_ptr<Trainer> trainer = this->trainer(info.Env());
  const std::string name = info[0].ToString().Utf8Value();
  const std::string which = info[1].ToString().Utf8Value();
  return run_job<std::vector<float>>(
      info.Env(), *compute_,
      [trainer, name, which](MatrixProducts&) {
        const TensorSlot& slot = slot_of(*trainer, name);
        const Arena& arena = arena_of(*trainer, which);
        if (arena.empty()) return std::vector<float>(static_cast<size_t>(slot.size), 0.0f);
        return std::vector<float>(arena.data() + slot.offset, arena.data() + slot.offset + slot.size);
      },
      [](Napi::Env env, std::vector<float>&& values) -> Napi::Value { return to_array(env, values); });
}

/// writeMoment(path, header, names, "firstMoment" | "secondMoment", cancel?): Promise<void>
Napi::Value TrainerBinding::write_moment(const Napi::CallbackInfo& info) {
  std::shared_ptr<Trainer> trainer = this->trainer(info.Env());
  const std::string path = info[0].ToString().Utf8Value();
  const std::vector<uint8_t> header = bytes(info[1], "header");
  const std::vector<std::string> names = texts(info[2]);
  const std::string which = info[3].ToString().Utf8Value();
  const CancelToken cancel = cancel_token(info[4]);
  return run_job<Nothing>(
      info.Env(), *compute_,
      [trainer, path, header, names, which, cancel](MatrixProducts&) {
        const Arena& arena = arena_of(*trainer, which);
        if (arena.empty()) throw EngineError("ENGINE_REQUEST_INVALID", "There are no optimizer moments before the first step.", "Save weights only.");
        std::vector<TensorPart> parts;
        for (const std::string& name : names) {
          const TensorSlot& slot = slot_of(*trainer, name);
          parts.push_back({arena.data() + slot.offset, slot.size});
        }
        write_tensors(path, std::string(header.begin(), header.end()), parts, cancel);
        return Nothing{};
      },
      finish_nothing);
}

/// loadMoments(files, firstSources, secondSources, steps): Promise<void>
Napi::Value TrainerBinding::load_moments(const Napi::CallbackInfo& info) {
  std::shared_ptr<Trainer> trainer = this->trainer(info.Env());
  const std::vector<std::string> files = texts(info[0]);
  const std::vector<TensorSource> first = read_sources(info[1]);
  const std::vector<TensorSource> second = read_sources(info[2]);
  const int64_t steps = info[3].ToNumber().Int64Value();
  return run_job<Nothing>(
      info.Env(), *compute_,
      [trainer, files, first, second, steps](MatrixProducts&) {
        trainer->clear_moments();
        const ParameterLayout& layout = trainer->model()->layout();
        try {
          read_tensors(trainer->reset_first_moment(), layout, files, first, CancelToken());
          read_tensors(trainer->reset_second_moment(), layout, files, second, CancelToken());
        } catch (...) {
          trainer->clear_moments();
          throw;
        }
        trainer->set_optimizer_steps(steps);
        return Nothing{};
      },
      finish_nothing);
}

Napi::Value TrainerBinding::clear_moments(const Napi::CallbackInfo& info) {
  std::shared_ptr<Trainer> trainer = this->trainer(info.Env());
  return run_job<Nothing>(
      info.Env(), *compute_,
      [trainer](MatrixProducts&) {
        trainer->clear_moments();
        return Nothing{};
      },
      finish_nothing);
}

/// optimizerSteps(): Promise<number>, the steps behind the moments
Napi::Value TrainerBinding::optimizer_steps(const Napi::CallbackInfo& info) {
  std::shared_ptr<Trainer> trainer = this->trainer(info.Env());
  return run_job<int64_t>(
      info.Env(), *compute_, [trainer](MatrixProducts&) { return trainer->optimizer_steps(); },
      [](Napi::Env env, int64_t&& steps) -> Napi::Value { return Napi::Number::New(env, static_cast<double>(steps)); });
}

void TrainerBinding::dispose(const Napi::CallbackInfo&) { trainer_.reset(); }

}  // namespace rollscope::binding

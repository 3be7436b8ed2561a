// Runs C++ work on the compute thread and settles a JavaScript promise with its result. Engine errors become Error objects
// with `code` and `next`; nothing is ever thrown across the binding from another thread.
#pragma once

#include <napi.h>

#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "addon_state.h"
#include "engine_error.h"

namespace rollscope::binding {

struct Failure {
  std::string code;
  std::string sentence;
  std::string next;
};

/// Runs `work` and returns what it threw, if anything.
template <typename Work>
std::optional<Failure> failure_of(Work&& work) {
  try {
    work();
    return std::nullopt;
  } catch (const EngineError& error) {
    return Failure{error.code(), error.what(), error.next()};
  } catch (const std::bad_alloc&) {
    return Failure{"ENGINE_OUT_OF_MEMORY", "The engine ran out of memory.", "Close other programs, lower training.tokenBudget, or use a smaller model."};
  } catch (const std::exception& error) {
    return Failure{"ENGINE_INTERNAL", std::string("The engine failed: ") + error.what() + ".", "Report this with the command that led here."};
  }
}

inline Napi::Error to_error(Napi::Env env, const Failure& failure) {
  Napi::Error error = Napi::Error::New(env, failure.sentence);
  error.Value().Set("code", failure.code);
  error.Value().Set("next", failure.next);
  return error;
}

/// Throws into JavaScript when `work` fails; for calls that answer at once.
template <typename Work>
void run_now(Napi::Env env, Work&& work) {
  const std::optional<Failure> failure = failure_of(std::forward<Work>(work));
  if (failure) throw to_error(env, *failure);
}

/// A promise for `finish(env, result)`, where result = work(products) is computed on the compute thread and `finish` runs on the
/// JavaScript thread. Captures are destroyed on the JavaScript thread while the environment lives.
template <typename Result, typename Work, typename Finish>
Napi::Promise run_job(Napi::Env env, ComputeThread& compute, Work work, Finish finish) {
  struct Job {
    Napi::Promise::Deferred deferred;
    Work work;
    Finish finish;
    std::optional<Result> result;
    std::optional<Failure> failure;
    Napi::ThreadSafeFunction wake;
  };
  auto job = std::make_shared<Job>(Job{Napi::Promise::Deferred::New(env), std::move(work), std::move(finish), {}, {}, {}});
  job->wake = Napi::ThreadSafeFunction::New(env, Napi::Function::New(env, [](const Napi::CallbackInfo&) {}), "rollscope", 0, 1);
  const Napi::Promise promise = job->deferred.Promise();
  compute.submit([job](MatrixProducts& products) mutable {
    job->failure = failure_of([&] { job->result.emplace(job->work(products)); });
    Napi::ThreadSafeFunction wake = job->wake;
    auto* passed = new std::shared_ptr<Job>(std::move(job));
    const napi_status status = wake.BlockingCall(passed, [](Napi::Env environment, Napi::Function, std::shared_ptr<Job>* received) {
      const std::unique_ptr<std::shared_ptr<Job>> owned(received);
      Job& done = **owned;
      if (done.failure) {
        done.deferred.Reject(to_error(environment, *done.failure).Value());
        return;
      }
      try {
        done.deferred.Resolve(done.finish(environment, std::move(*done.result)));
      } catch (const Napi::Error& error) {
        done.deferred.Reject(error.Value());
      }
    });
    if (status != napi_ok) delete passed;
    wake.Release();
  });
  return promise;
}

/// For work without a result.
struct Nothing {};
inline Napi::Value finish_nothing(Napi::Env env, Nothing&&) { return env.Undefined(); }

}  // namespace rollscope::binding

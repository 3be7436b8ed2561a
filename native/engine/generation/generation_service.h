// Runs a Generator on the compute thread, one iteration a job, so that training jobs take turns with it. Requests may come
// from any thread; what they yield is delivered once an iteration, from the compute thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compute_thread.h"
#include "generation/generator.h"
#include "model.h"

namespace rollscope {

class GenerationService : public std::enable_shared_from_this<GenerationService> {
 public:
  using Deliver = std::function<void(std::vector<GenerationEvent>)>;
  /// Called on the compute thread with the result, or with the error and an undefined result.
  using Done = std::function<void(int64_t result, const EngineError* error)>;

  /// Nothing is computed before `update_weights`. `compute` must live until close().
  static std::shared_ptr<GenerationService> create(ComputeThread& compute, std::shared_ptr<Model> model,
                                                   const GeneratorOptions& options, TokenBytes token_bytes, Deliver deliver);

  /// Requests, each with an id of its own; those of one call start in one iteration.
  void submit(std::vector<std::pair<int64_t, GenerationRequest>> requests);
  void abort(int64_t id);
  /// Done when what the mode lets finish has finished; a later pause or resume also ends the wait.
  void pause(PauseMode mode, Done done);
  void resume(Done done);
  void update_weights(Done done);
  void release_memory(Done done);
  void restore_memory(Done done);
  /// As of the last iteration; requests not yet seen by the compute thread count as queued.
  GeneratorHealth health() const;
  /// Nothing is delivered and nobody is told anything after this returns; waiting commands are dropped.
  void close();

 private:
  using Command = std::function<void(Generator&, MatrixProducts&)>;

  GenerationService(ComputeThread& compute, std::shared_ptr<Model> model, Deliver deliver)
      : compute_(compute), model_(std::move(model)), deliver_(std::move(deliver)) {}

  void post(Command command);
  /// Runs `work` as a command and reports its result or error.
  void post_result(std::function<int64_t(Generator&, MatrixProducts&)> work, Done done);
  void run(MatrixProducts& products);
  void enqueue();
  void settle();
  /// Calls the outside unless closed; close() waits for a call under way.
  template <typename Call>
  void tell(Call&& call) {
    const std::lock_guard<std::mutex> lock(outside_);
    if (!is_silent_) call();
  }

  ComputeThread& compute_;  // not touched after close(); owning it here could end it on its own thread
  std::shared_ptr<Model> model_;
  Deliver deliver_;
  std::unique_ptr<Generator> generator_;  // compute thread only, after construction
  std::vector<Done> settling_;            // compute thread only

  mutable std::mutex mutex_;
  std::vector<Command> inbox_;
  int64_t submitted_ = 0;  // requests in the inbox
  bool is_enqueued_ = false;
  bool is_closed_ = false;
  GeneratorHealth health_;

  std::mutex outside_;
  bool is_silent_ = false;  // guarded by outside_
};

}  // namespace rollscope

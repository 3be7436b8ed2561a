// A flag that a caller raises and the compute thread reads between layers. A thread that is being stopped sees every flag
// raised, so that a long job does not keep the process from ending.
#pragma once

#include <atomic>
#include <memory>

#include "engine_error.h"

namespace rollscope {

/// Set by a compute thread for itself.
inline thread_local const std::atomic<bool>* thread_stopping = nullptr;

class CancelToken {
 public:
  CancelToken() : raised_(std::make_shared<std::atomic<bool>>(false)) {}

  void raise() const { raised_->store(true, std::memory_order_relaxed); }
  bool raised() const {
    return raised_->load(std::memory_order_relaxed) || (thread_stopping != nullptr && thread_stopping->load(std::memory_order_relaxed));
  }
  void throw_if_raised() const {
    if (raised()) throw EngineError("ENGINE_CANCELLED", "The engine's work was cancelled.", "Start it again when it is wanted.");
  }

 private:
  std::shared_ptr<std::atomic<bool>> raised_;
};

}  // namespace rollscope

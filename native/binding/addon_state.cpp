// The shared compute thread of addon_state.h.
#include "addon_state.h"

#include <mutex>

namespace rollscope::binding {

std::shared_ptr<ComputeThread> shared_compute_thread(int threads) {
  static std::mutex mutex;
  static std::weak_ptr<ComputeThread> existing;
  const std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<ComputeThread> thread = existing.lock();
  if (thread == nullptr) {
    thread = std::make_shared<ComputeThread>(threads);
    existing = thread;
  }
  return thread;
}

}  // namespace rollscope::binding

// The one thread that computes. All models of the process share it, so that a single OpenMP pool exists and never two
// products fight for the cores. Jobs run in the order they were submitted; each is short enough to take turns (a layer stack
// over one micro-batch, one decoding step).
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "matrix_products.h"

namespace rollscope {

class ComputeThread {
 public:
  using Job = std::function<void(MatrixProducts&)>;

  /// 0 threads: one for each processor this process may use.
  explicit ComputeThread(int threads);
  /// Stops.
  ~ComputeThread();
  ComputeThread(const ComputeThread&) = delete;
  ComputeThread& operator=(const ComputeThread&) = delete;

  /// From any thread. A job must not throw.
  void submit(Job job);
  int threads() const { return threads_; }
  /// Cancels the running job, drops the waiting ones (their destructors run) and later ones, joins. Again: nothing.
  void stop();

 private:
  void work();

  const int threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace rollscope

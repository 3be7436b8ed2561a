// The job queue of compute_thread.h.
#include "compute_thread.h"

#include <omp.h>

#include "cancel_token.h"

namespace rollscope {

ComputeThread::ComputeThread(int threads) : threads_(threads > 0 ? threads : omp_get_num_procs()), thread_([this] { work(); }) {}

ComputeThread::~ComputeThread() { stop(); }

void ComputeThread::stop() {
  std::deque<Job> dropped;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    dropped.swap(jobs_);
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ComputeThread::submit(Job job) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return;
    jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
}

void ComputeThread::work() {
  // Owned by this thread because the OpenMP thread count is a property of the thread that asks.
  MatrixProducts products(threads_);
  thread_stopping = &stopping_;
  for (;;) {
    Job job;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job(products);
  }
}

}  // namespace rollscope

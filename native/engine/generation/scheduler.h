// Decides what one iteration computes: one row for every sequence that decodes, chunks of prompts within a budget, and who
// joins. Owns the sequences, the cache blocks they hold and the prefix tree. It never touches weights or logits.
//
// Rules. Running sequences are served in the order they joined. When blocks run out, cached prefixes nobody uses go first,
// then the youngest running sequence is sent back to wait; it is computed again later, with the same result. A request waits
// while another one is about to compute a prefix it can share; one whose whole prompt is being finished in this iteration
// joins it for nothing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "generation/kv_pages.h"
#include "generation/prefix_tree.h"
#include "generation/sequence.h"

namespace rollscope {

struct SchedulerLimits {
  int64_t running = 256;              // sequences computed together
  int64_t rows_per_iteration = 512;   // decoding rows and prompt rows together; decoding rows always fit
  int64_t least_prompt_rows = 64;     // kept for prompts however many sequences decode
};

struct SchedulerCounts {
  int64_t prefilled = 0;    // prompt rows computed, recomputation included
  int64_t decoded = 0;      // single rows computed
  int64_t evicted = 0;      // blocks
  int64_t preempted = 0;    // sequences sent back to wait
};

/// Positions [start, start + count) of a sequence.
struct RowSpan {
  Sequence* sequence = nullptr;
  int64_t start = 0;
  int64_t count = 0;
};

/// A sequence that shares the logits of another one's last row.
struct Follower {
  Sequence* sequence = nullptr;
  size_t span = 0;
};

struct IterationPlan {
  std::vector<RowSpan> spans;
  std::vector<Follower> followers;
  int64_t rows = 0;
  bool has_newcomers = false;  // somebody joined, and may read blocks that this iteration computes
};

class Scheduler {
 public:
  Scheduler(const KvGeometry& geometry, int64_t cache_bytes, const SchedulerLimits& limits);

  KvPages& pages() { return pages_; }
  const KvPages& pages() const { return pages_; }
  int64_t cached_tokens() const { return tree_.tokens(); }
  const SchedulerCounts& counts() const { return counts_; }
  size_t running() const { return running_.size(); }
  size_t waiting() const { return waiting_.size(); }
  /// Waiting sequences that ran before and were sent back.
  size_t interrupted() const;

  void add(std::unique_ptr<Sequence> sequence);
  /// nullptr when it has ended.
  Sequence* find(int64_t id);
  std::vector<Sequence*> all();

  /// What to compute next; the plan is valid until the next call of any method that changes something. With `admits_new` false
  /// only sequences that ran before go on.
  const IterationPlan& plan(bool admits_new);

  /// Ends a sequence. Its keys and values stay in the prefix tree until their place is needed.
  void finish(Sequence* sequence);
  /// As `finish`, when the keys and values of the last plan cannot be trusted.
  void drop(Sequence* sequence);

  /// Every running sequence waits again, nothing computed; the tree then holds `weights_version`. For new weights.
  void restart(int64_t weights_version);

 private:
  int32_t take_block();
  bool reserve(Sequence* sequence, int64_t end);
  void send_back(Sequence* sequence);
  void release(Sequence* sequence);
  void schedule(Sequence* sequence, int64_t count);
  void admit(bool admits_new, int64_t budget);
  bool is_shared_soon(const Sequence& candidate, int64_t matched) const;
  bool start(Sequence* sequence, const PrefixTree::Match& match, bool copies);
  void join(Sequence* sequence, size_t span);

  SchedulerLimits limits_;
  KvPages pages_;
  PrefixTree tree_;
  std::unordered_map<int64_t, std::unique_ptr<Sequence>> sequences_;
  std::map<int64_t, Sequence*> waiting_;  // by id: in order of arrival
  std::vector<Sequence*> running_;        // in order of joining
  IterationPlan plan_;
  std::unordered_multimap<uint64_t, size_t> completing_;  // hash of tokens → span that finishes a prompt in this plan
  int64_t iteration_ = 0;
  SchedulerCounts counts_;
};

}  // namespace rollscope

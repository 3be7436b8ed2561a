// The rules of scheduler.h.
#include "generation/scheduler.h"

#include <algorithm>

namespace rollscope {

namespace {

uint64_t hash_tokens(const std::vector<int32_t>& tokens) {
  uint64_t state = tokens.size();
  for (const int32_t token : tokens) state = mix64((state ^ static_cast<uint64_t>(token)) + 0x9e3779b97f4a7c15ull);
  return state;
}

int64_t blocks_for(int64_t positions) { return (positions + block_positions - 1) / block_positions; }

}  // namespace

Scheduler::Scheduler(const KvGeometry& geometry, int64_t cache_bytes, const SchedulerLimits& limits)
    : limits_(limits), pages_(geometry, cache_bytes), tree_(pages_, 0) {}

size_t Scheduler::interrupted() const {
  return static_cast<size_t>(std::count_if(waiting_.begin(), waiting_.end(), [](const auto& entry) { return entry.second->has_started(); }));
}

void Scheduler::add(std::unique_ptr<Sequence> sequence) {
  sequence->node = tree_.root();
  waiting_.emplace(sequence->id, sequence.get());
  sequences_.emplace(sequence->id, std::move(sequence));
}

Sequence* Scheduler::find(int64_t id) {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? nullptr : found->second.get();
}

std::vector<Sequence*> Scheduler::all() {
  std::vector<Sequence*> sequences = running_;
  for (const auto& [id, sequence] : waiting_) sequences.push_back(sequence);
  return sequences;
}

const IterationPlan& Scheduler::plan(bool admits_new) {
  ++iteration_;
  plan_.spans.clear();
  plan_.followers.clear();
  plan_.rows = 0;
  plan_.has_newcomers = false;
  completing_.clear();
  const auto decoding = std::count_if(running_.begin(), running_.end(), [](const Sequence* sequence) { return sequence->pending() == 1; });
  int64_t budget = std::max(limits_.rows_per_iteration - static_cast<int64_t>(decoding), limits_.least_prompt_rows);
  // Whoever must give way stands at the end and has nothing planned yet.
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence* sequence = running_[i];
    const int64_t pending = sequence->pending();
    const int64_t count = pending == 1 ? 1 : std::min(pending, budget);
    if (count == 0) continue;
    if (!reserve(sequence, sequence->computed + count)) break;
    schedule(sequence, count);
    if (pending > 1) budget -= count;
  }
  admit(admits_new, budget);
  return plan_;
}

void Scheduler::admit(bool admits_new, int64_t budget) {
  for (auto next = waiting_.begin(); next != waiting_.end() && static_cast<int64_t>(running_.size()) < limits_.running;) {
    const auto entry = next++;
    Sequence* sequence = entry->second;
    if (!admits_new && !sequence->has_started()) continue;
    if (!sequence->request.is_score() && !completing_.empty()) {
      const auto [first, last] = completing_.equal_range(hash_tokens(sequence->tokens));
      const auto leader = std::find_if(first, last, [&](const auto& item) { return plan_.spans[item.second].sequence->tokens == sequence->tokens; });
      if (leader != last) {
        waiting_.erase(entry);
        join(sequence, leader->second);
        continue;
      }
    }
    if (budget <= 0) continue;
    const PrefixTree::Match match = tree_.match(sequence->tokens, sequence->cacheable(), iteration_);
    if (is_shared_soon(*sequence, static_cast<int64_t>(match.blocks.size()) * block_positions)) continue;
    // The oldest that does not fit keeps its turn: smaller ones behind it must not starve it.
    if (!start(sequence, match, true) && !start(sequence, match, false)) break;
    waiting_.erase(entry);
    const int64_t count = std::min(sequence->pending(), budget);
    schedule(sequence, count);
    budget -= count;
  }
}

/// Whether a running sequence is about to compute a block that this one could take from it.
bool Scheduler::is_shared_soon(const Sequence& candidate, int64_t matched) const {
  for (const Sequence* other : running_) {
    if (other->pending() <= 0) continue;
    const bool is_same = !candidate.request.is_score() && !other->request.is_score() && other->tokens == candidate.tokens;
    if (is_same) return true;
    const int64_t next = matched + block_positions;
    if (next > candidate.cacheable() || next > other->goal()) continue;
    if (std::equal(candidate.tokens.begin(), candidate.tokens.begin() + next, other->tokens.begin())) return true;
  }
  return false;
}

/// Takes the cached prefix and blocks for the rest of the prompt; false, with nothing changed, when they do not fit now. A copy
/// needs its source to stay for the moment, one block more than the sequence itself.
bool Scheduler::start(Sequence* sequence, const PrefixTree::Match& match, bool copies) {
  for (const int32_t block : match.blocks) pages_.retain(block);
  tree_.pin(match.node);
  const int32_t source = copies && match.partial != nullptr ? match.partial->block : -1;
  if (source >= 0) pages_.retain(source);
  sequence->blocks = match.blocks;
  sequence->node = match.node;
  sequence->registered = static_cast<int64_t>(match.blocks.size());
  sequence->computed = sequence->registered * block_positions;
  bool fits = true;
  const auto wanted = static_cast<size_t>(blocks_for(sequence->goal()));
  while (fits && sequence->blocks.size() < wanted) {
    const int32_t block = take_block();
    fits = block >= 0;
    if (fits) sequence->blocks.push_back(block);
  }
  if (fits && source >= 0) {
    pages_.copy(source, sequence->blocks[static_cast<size_t>(sequence->registered)]);
    sequence->computed += match.partial_tokens;
  }
  if (source >= 0) pages_.release(source);
  if (!fits) {
    release(sequence);
    return false;
  }
  if (!sequence->has_started()) sequence->cached_tokens = std::min(sequence->computed, sequence->prompt_length());
  running_.push_back(sequence);
  plan_.has_newcomers = true;
  return true;
}

void Scheduler::join(Sequence* sequence, size_t span) {
  const Sequence& leader = *plan_.spans[span].sequence;
  for (const int32_t block : leader.blocks) pages_.retain(block);
  tree_.pin(leader.node);
  sequence->blocks = leader.blocks;
  sequence->node = leader.node;
  sequence->registered = leader.registered;
  sequence->computed = leader.computed;
  if (!sequence->has_started()) sequence->cached_tokens = sequence->prompt_length();
  running_.push_back(sequence);
  plan_.has_newcomers = true;
  plan_.followers.push_back({sequence, span});
}

int32_t Scheduler::take_block() {
  for (;;) {
    const int32_t block = pages_.allocate();
    if (block >= 0 || !tree_.evict_one()) return block;
    ++counts_.evicted;
  }
}

/// Makes positions [computed, end) writable; false when the sequence itself had to give way.
bool Scheduler::reserve(Sequence* sequence, int64_t end) {
  const auto take = [&]() -> int32_t {
    for (;;) {
      const int32_t block = take_block();
      if (block >= 0) return block;
      Sequence* youngest = running_.back();
      send_back(youngest);
      if (youngest == sequence) return -1;
    }
  };
  if (sequence->computed % block_positions != 0) {
    // Siblings share the unfinished block of their prompt until they write to it.
    const auto index = static_cast<size_t>(sequence->computed / block_positions);
    const int32_t shared = sequence->blocks[index];
    if (pages_.references(shared) > 1) {
      const int32_t own = take();
      if (own < 0) return false;
      if (pages_.references(shared) > 1) {
        pages_.copy(shared, own);
        pages_.release(shared);
        sequence->blocks[index] = own;
      } else {
        pages_.release(own);  // the others gave way meanwhile
      }
    }
  }
  while (static_cast<int64_t>(sequence->blocks.size()) * block_positions < end) {
    const int32_t block = take();
    if (block < 0) return false;
    sequence->blocks.push_back(block);
  }
  return true;
}

void Scheduler::schedule(Sequence* sequence, int64_t count) {
  if (sequence->pending() == 1 && sequence->generated() > 0) {
    counts_.decoded += 1;
  } else {
    counts_.prefilled += count;
  }
  plan_.spans.push_back({sequence, sequence->computed, count});
  plan_.rows += count;
  sequence->computed += count;
  while ((sequence->registered + 1) * block_positions <= sequence->computed) {
    const auto tokens = std::span<const int32_t>(sequence->tokens)
                            .subspan(static_cast<size_t>(sequence->registered * block_positions), static_cast<size_t>(block_positions));
    int32_t& own = sequence->blocks[static_cast<size_t>(sequence->registered)];
    PrefixTree::Node* node = tree_.insert(sequence->node, tokens, own, iteration_);
    if (node->block != own) {
      // Somebody computed the same block. Both hold the same bits, and two copies could fill a small cache for ever.
      pages_.retain(node->block);
      pages_.release(own);
      own = node->block;
    }
    tree_.pin(node);
    tree_.unpin(sequence->node);
    sequence->node = node;
    ++sequence->registered;
  }
  if (!sequence->request.is_score() && sequence->pending() == 0) completing_.emplace(hash_tokens(sequence->tokens), plan_.spans.size() - 1);
}

void Scheduler::release(Sequence* sequence) {
  tree_.unpin(sequence->node);
  for (const int32_t block : sequence->blocks) pages_.release(block);
  sequence->blocks.clear();
  sequence->node = tree_.root();
  sequence->registered = 0;
  sequence->computed = 0;
}

void Scheduler::send_back(Sequence* sequence) {
  std::erase(running_, sequence);
  release(sequence);
  waiting_.emplace(sequence->id, sequence);
  ++counts_.preempted;
}

void Scheduler::finish(Sequence* sequence) {
  const int64_t whole = sequence->registered * block_positions;
  if (sequence->computed > whole) {
    const auto tail = std::span<const int32_t>(sequence->tokens).subspan(static_cast<size_t>(whole), static_cast<size_t>(sequence->computed - whole));
    tree_.insert(sequence->node, tail, sequence->blocks[static_cast<size_t>(sequence->registered)], iteration_);
  }
  drop(sequence);
}

void Scheduler::drop(Sequence* sequence) {
  // A waiting sequence holds nothing, and its node is the root.
  if (waiting_.erase(sequence->id) == 0) {
    std::erase(running_, sequence);
    release(sequence);
  }
  sequences_.erase(sequence->id);
}

void Scheduler::restart(int64_t weights_version) {
  while (!running_.empty()) send_back(running_.back());
  // A score is of one version of the weights.
  for (const auto& [id, sequence] : waiting_) {
    sequence->score_logprobs.clear();
    sequence->score_entropies.clear();
  }
  tree_.flush(weights_version);
}

}  // namespace rollscope

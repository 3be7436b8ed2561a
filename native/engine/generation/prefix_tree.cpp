// Radix tree over token blocks with least-recently-used eviction of leaves.
#include "generation/prefix_tree.h"

#include <algorithm>

namespace rollscope {

namespace {

int64_t common_length(std::span<const int32_t> a, std::span<const int32_t> b) {
  const size_t limit = std::min(a.size(), b.size());
  size_t length = 0;
  while (length < limit && a[length] == b[length]) ++length;
  return static_cast<int64_t>(length);
}

}  // namespace

PrefixTree::PrefixTree(KvPages& pages, int64_t weights_version) : pages_(pages), weights_version_(weights_version) {}

PrefixTree::~PrefixTree() = default;

PrefixTree::Match PrefixTree::match(std::span<const int32_t> tokens, int64_t limit, int64_t iteration) {
  Match found;
  found.node = &root_;
  ++clock_;
  int64_t matched = 0;
  std::vector<int32_t> key;
  while (matched + block_positions <= limit) {
    const auto next = tokens.subspan(static_cast<size_t>(matched), static_cast<size_t>(block_positions));
    key.assign(next.begin(), next.end());
    const auto child = found.node->children.find(key);
    if (child == found.node->children.end()) break;
    found.node = child->second.get();
    found.blocks.push_back(found.node->block);
    touch(found.node);
    matched += block_positions;
  }
  // Children are sorted, so the one that agrees longest stands beside the place where the rest of the tokens would.
  const auto rest = tokens.subspan(static_cast<size_t>(matched), static_cast<size_t>(std::min(limit - matched, block_positions)));
  if (rest.empty() || found.node->children.empty()) return found;
  key.assign(rest.begin(), rest.end());
  const auto consider = [&](Node* child) {
    if (child->iteration >= iteration) return;
    const int64_t common = common_length(child->tokens, rest);
    if (common > found.partial_tokens) {
      found.partial = child;
      found.partial_tokens = common;
    }
  };
  const auto after = found.node->children.lower_bound(key);
  if (after != found.node->children.end()) consider(after->second.get());
  if (after != found.node->children.begin()) consider(std::prev(after)->second.get());
  if (found.partial != nullptr) touch(found.partial);
  return found;
}

PrefixTree::Node* PrefixTree::insert(Node* parent, std::span<const int32_t> tokens, int32_t block, int64_t iteration) {
  ++clock_;
  std::vector<int32_t> key(tokens.begin(), tokens.end());
  auto& slot = parent->children[key];
  if (slot != nullptr) {
    touch(slot.get());
    return slot.get();
  }
  if (parent != &root_ && parent->children.size() == 1) leaves_.erase({parent->last_used, parent});
  slot = std::make_unique<Node>();
  slot->tokens = std::move(key);
  slot->block = block;
  slot->parent = parent;
  slot->iteration = iteration;
  slot->last_used = clock_;
  pages_.retain(block);
  leaves_.insert({clock_, slot.get()});
  tokens_ += static_cast<int64_t>(tokens.size());
  return slot.get();
}

void PrefixTree::touch(Node* node) {
  if (node->children.empty()) {
    leaves_.erase({node->last_used, node});
    leaves_.insert({clock_, node});
  }
  node->last_used = clock_;
}

bool PrefixTree::evict_one() {
  for (const auto& [last_used, leaf] : leaves_) {
    if (leaf->pins > 0 || pages_.references(leaf->block) > 1) continue;
    remove(leaf);
    return true;
  }
  return false;
}

void PrefixTree::remove(Node* leaf) {
  Node* parent = leaf->parent;
  leaves_.erase({leaf->last_used, leaf});
  tokens_ -= static_cast<int64_t>(leaf->tokens.size());
  pages_.release(leaf->block);
  const std::vector<int32_t> key = leaf->tokens;
  parent->children.erase(key);
  if (parent != &root_ && parent->children.empty()) leaves_.insert({parent->last_used, parent});
}

void PrefixTree::flush(int64_t weights_version) {
  while (!leaves_.empty()) remove(leaves_.begin()->second);
  weights_version_ = weights_version;
}

}  // namespace rollscope

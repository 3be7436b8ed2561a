// Which token prefixes have their keys and values in the cache: a radix tree whose edges are blocks of up to 16 tokens,
// for one version of the weights. It holds one reference on every block in it and gives up blocks nobody else uses,
// least recently used first. It never computes or copies keys and values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "generation/kv_pages.h"

namespace rollscope {

class PrefixTree {
 public:
  struct Node {
    std::vector<int32_t> tokens;  // 16, or fewer in a leaf that only serves as a source of copies
    int32_t block = -1;
    Node* parent = nullptr;
    std::map<std::vector<int32_t>, std::unique_ptr<Node>> children;
    int32_t pins = 0;             // sequences whose deepest node this is
    int64_t last_used = 0;
    int64_t iteration = 0;        // the iteration that computes the block's last position
  };

  struct Match {
    Node* node = nullptr;                  // deepest whole block, the root when none
    std::vector<int32_t> blocks;           // whole blocks from the root
    Node* partial = nullptr;               // child of `node` that agrees in `partial_tokens` more tokens
    int64_t partial_tokens = 0;
  };

  PrefixTree(KvPages& pages, int64_t weights_version);
  ~PrefixTree();
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  Node* root() { return &root_; }
  int64_t weights_version() const { return weights_version_; }
  int64_t tokens() const { return tokens_; }

  /// Longest cached prefix of tokens[0, limit). Only sources computed before `iteration` are offered for copying.
  /// Touches what it finds.
  Match match(std::span<const int32_t> tokens, int64_t limit, int64_t iteration);

  /// Child of `parent` with these tokens; when there is none it is made of `block`, which gains a reference.
  Node* insert(Node* parent, std::span<const int32_t> tokens, int32_t block, int64_t iteration);

  void pin(Node* node) { ++node->pins; }
  void unpin(Node* node) { --node->pins; }

  /// Frees the least recently used block that only the tree holds; false when there is none.
  bool evict_one();

  /// Drops everything; no node may be pinned. What is inserted afterwards belongs to `weights_version`.
  void flush(int64_t weights_version);

 private:
  void touch(Node* node);
  void remove(Node* leaf);

  KvPages& pages_;
  int64_t weights_version_;
  Node root_;
  int64_t clock_ = 0;
  int64_t tokens_ = 0;
  std::set<std::pair<int64_t, Node*>> leaves_;  // by last use
};

}  // namespace rollscope

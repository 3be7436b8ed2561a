// A model's weights and everything that does not change while it exists. Trainer and generator share one Model; all access
// to weights happens on the compute thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "model_config.h"
#include "parameters.h"
#include "rope_table.h"

namespace rollscope {

class Model {
 public:
  explicit Model(ModelConfig config);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ModelConfig& config() const { return config_; }
  const ParameterLayout& layout() const { return layout_; }
  RopeTable& rope() { return rope_; }

  const float* weights() const { return weights_.data(); }
  /// Call weights_changed() after writing.
  float* mutable_weights() { return weights_.data(); }
  Arena& arena() { return weights_; }

  /// Optimizer steps behind the weights. Readable from any thread.
  int64_t version() const { return version_.load(); }
  /// Counts every change of the weights; packed copies and caches compare it. Readable from any thread.
  int64_t stamp() const { return stamp_.load(); }
  void weights_changed(int64_t version) {
    version_.store(version);
    stamp_.fetch_add(1);
  }

  /// Copies of the weights under a name; taking one twice replaces it.
  void take_snapshot(const std::string& id);
  void release_snapshot(const std::string& id) { snapshots_.erase(id); }
  /// Throws ENGINE_REQUEST_INVALID when there is none of that name.
  const float* snapshot(const std::string& id) const;
  int64_t snapshot_count() const { return static_cast<int64_t>(snapshots_.size()); }

 private:
  const ModelConfig config_;
  const ParameterLayout layout_;
  RopeTable rope_;
  Arena weights_;
  std::map<std::string, Arena> snapshots_;
  std::atomic<int64_t> version_{0};
  std::atomic<int64_t> stamp_{1};
};

}  // namespace rollscope

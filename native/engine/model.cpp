// Weights and their snapshots.
#include "model.h"

#include <cstring>

#include "engine_error.h"

namespace rollscope {

Model::Model(ModelConfig config) : config_(std::move(config)), layout_(config_), rope_(config_), weights_(layout_.size()) {}

void Model::take_snapshot(const std::string& id) {
  Arena& copy = snapshots_[id];
  if (copy.empty()) copy.resize(layout_.size());
  std::memcpy(copy.data(), weights_.data(), static_cast<size_t>(layout_.size()) * sizeof(float));
}

const float* Model::snapshot(const std::string& id) const {
  const auto found = snapshots_.find(id);
  if (found == snapshots_.end()) {
    throw EngineError("ENGINE_REQUEST_INVALID", "The engine holds no snapshot named " + id + ".",
                      "Take it with snapshot(id) before forward asks for it.");
  }
  return found->second.data();
}

}  // namespace rollscope

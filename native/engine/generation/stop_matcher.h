// Finds stop strings in the bytes of generated tokens, wherever token borders fall. Knows bytes only, never characters.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rollscope {

/// The bytes that each token id adds to the text; ids beyond the table add none.
class TokenBytes {
 public:
  TokenBytes() = default;
  /// `offsets` [ids + 1], ascending, the last one equal to bytes.size().
  TokenBytes(std::vector<uint8_t> bytes, std::vector<uint32_t> offsets) : bytes_(std::move(bytes)), offsets_(std::move(offsets)) {}

  bool empty() const { return offsets_.empty(); }
  std::span<const uint8_t> of(int32_t id) const {
    const auto index = static_cast<size_t>(id);
    if (index + 1 >= offsets_.size()) return {};
    return std::span<const uint8_t>(bytes_).subspan(offsets_[index], offsets_[index + 1] - offsets_[index]);
  }

 private:
  std::vector<uint8_t> bytes_;
  std::vector<uint32_t> offsets_;
};

/// One Knuth-Morris-Pratt automaton a stop string: each byte costs constant time, whatever was generated before.
class StopMatcher {
 public:
  StopMatcher() = default;
  explicit StopMatcher(const std::vector<std::string>& stop_strings);

  /// Index of the stop string that these bytes complete first (the earlier in the list on a tie), or −1.
  int32_t push(std::span<const uint8_t> bytes);

 private:
  struct Automaton {
    std::string text;
    std::vector<uint32_t> failure;  // length of the longest border of text[0..i]
    uint32_t matched = 0;
  };
  std::vector<Automaton> automata_;
};

}  // namespace rollscope

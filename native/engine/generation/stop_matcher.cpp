// Knuth-Morris-Pratt over a stream of bytes.
#include "generation/stop_matcher.h"

namespace rollscope {

StopMatcher::StopMatcher(const std::vector<std::string>& stop_strings) {
  automata_.reserve(stop_strings.size());
  for (const std::string& text : stop_strings) {
    Automaton automaton{text, std::vector<uint32_t>(text.size(), 0), 0};
    uint32_t border = 0;
    for (size_t i = 1; i < text.size(); ++i) {
      while (border > 0 && text[i] != text[border]) border = automaton.failure[border - 1];
      if (text[i] == text[border]) ++border;
      automaton.failure[i] = border;
    }
    automata_.push_back(std::move(automaton));
  }
}

int32_t StopMatcher::push(std::span<const uint8_t> bytes) {
  for (const uint8_t byte : bytes) {
    int32_t completed = -1;
    for (size_t i = 0; i < automata_.size(); ++i) {
      Automaton& automaton = automata_[i];
      const char next = static_cast<char>(byte);
      while (automaton.matched > 0 && automaton.text[automaton.matched] != next) {
        automaton.matched = automaton.failure[automaton.matched - 1];
      }
      if (automaton.text[automaton.matched] == next) ++automaton.matched;
      if (automaton.matched == automaton.text.size()) {
        automaton.matched = automaton.failure[automaton.matched - 1];
        if (completed < 0) completed = static_cast<int32_t>(i);
      }
    }
    if (completed >= 0) return completed;
  }
  return -1;
}

}  // namespace rollscope

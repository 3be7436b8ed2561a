#include "json_text.h"

#include <cstdint>
#include <cstdio>

namespace rollscope {

namespace {

// Length of the UTF-8 character at `at`; 0 when there is none.
std::size_t characterAt(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t offset) { return static_cast<std::uint8_t>(text[at + offset]); };
  const auto follows = [&](std::size_t offset) { return at + offset < text.size() && (byte(offset) & 0xC0) == 0x80; };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!follows(1) || !follows(2)) return 0;
    if (first == 0xE0 && byte(1) < 0xA0) return 0;
    if (first == 0xED && byte(1) > 0x9F) return 0;
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!follows(1) || !follows(2) || !follows(3)) return 0;
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

}  // namespace

std::string jsonText(std::string_view text) {
  std::string written = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = characterAt(text, at);
    if (length == 0) {
      written += "\\ufffd";
      at += 1;
      continue;
    }
    const char letter = text[at];
    if (letter == '"' || letter == '\\') {
      written += '\\';
      written += letter;
    } else if (length == 1 && static_cast<unsigned char>(letter) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(letter));
      written += escaped;
    } else {
      written += text.substr(at, length);
    }
    at += length;
  }
  return written + "\"";
}

}  // namespace rollscope

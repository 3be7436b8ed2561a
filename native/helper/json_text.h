// Text for JSON documents that the helper writes. Bytes that are no UTF-8 become U+FFFD, so that a reader always can parse them.
#pragma once

#include <string>
#include <string_view>

namespace rollscope {

// With its quotes.
std::string jsonText(std::string_view text);

}  // namespace rollscope

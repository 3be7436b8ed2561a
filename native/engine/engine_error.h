// The one exception of the engine. It never crosses the binding: there it becomes a coded RollscopeError.
#pragma once

#include <stdexcept>
#include <string>

namespace rollscope {

/// `code` is a key of errorCodes in protocol/errors.ts.
class EngineError : public std::runtime_error {
 public:
  EngineError(std::string code, const std::string& sentence, std::string next)
      : std::runtime_error(sentence), code_(std::move(code)), next_(std::move(next)) {}

  const std::string& code() const noexcept { return code_; }
  const std::string& next() const noexcept { return next_; }

 private:
  std::string code_;
  std::string next_;
};

}  // namespace rollscope

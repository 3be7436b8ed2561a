// A log file of bounded size: when it is full it becomes FILE.1, in place of the one before. A full disk loses lines, never the run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rollscope {

class BoundedLog {
 public:
  BoundedLog(std::string file, std::int64_t most_bytes);
  ~BoundedLog();
  BoundedLog(const BoundedLog&) = delete;
  BoundedLog& operator=(const BoundedLog&) = delete;

  void write(std::string_view text);

 private:
  void open();

  std::string file_;
  std::int64_t most_bytes_;
  std::int64_t bytes_ = 0;
  int descriptor_ = -1;
};

}  // namespace rollscope

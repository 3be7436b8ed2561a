#include "bounded_log.h"

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rollscope {

BoundedLog::BoundedLog(std::string file, std::int64_t most_bytes) : file_(std::move(file)), most_bytes_(most_bytes) {
  open();
}

BoundedLog::~BoundedLog() {
  if (descriptor_ >= 0) close(descriptor_);
}

void BoundedLog::open() {
  descriptor_ = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  struct stat found{};
  bytes_ = descriptor_ >= 0 && fstat(descriptor_, &found) == 0 ? found.st_size : 0;
}

void BoundedLog::write(std::string_view text) {
  if (bytes_ > 0 && bytes_ + static_cast<std::int64_t>(text.size()) > most_bytes_) {
    if (descriptor_ >= 0) close(descriptor_);
    std::rename(file_.c_str(), (file_ + ".1").c_str());
    open();
  }
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    bytes_ += written;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace rollscope

#include "machine_memory.h"

#include <fstream>
#include <string>

namespace rollscope {

namespace {

// Value of `key` in a file of lines "key value" or "key: value".
std::optional<std::int64_t> valueOf(const std::string& file, const std::string& key) {
  std::ifstream lines(file);
  std::string name;
  std::int64_t value = 0;
  std::string rest;
  while (lines >> name) {
    if (lines >> value && (name == key || name == key + ":")) return value;
    lines.clear();
    std::getline(lines, rest);
  }
  return std::nullopt;
}

// The nearest group on the way up that counts: the root group does not.
std::optional<std::int64_t> groupKills() {
  std::ifstream lines("/proc/self/cgroup");
  std::string line;
  while (std::getline(lines, line)) {
    const bool isUnified = line.rfind("0::", 0) == 0;
    const auto memory = line.find(":memory:");
    if (!isUnified && memory == std::string::npos) continue;
    std::string path = isUnified ? line.substr(3) : line.substr(memory + 8);
    for (;;) {
      const auto kills = isUnified ? valueOf("/sys/fs/cgroup" + path + "/memory.events", "oom_kill")
                                   : valueOf("/sys/fs/cgroup/memory" + path + "/memory.oom_control", "oom_kill");
      if (kills) return kills;
      if (path.empty() || path == "/") break;
      path.resize(path.find_last_of('/'));
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> availableMemory() {
  const auto kibibytes = valueOf("/proc/meminfo", "MemAvailable");
  if (!kibibytes) return std::nullopt;
  return *kibibytes * 1024;
}

MemoryKills memoryKills() { return {groupKills(), valueOf("/proc/vmstat", "oom_kill")}; }

}  // namespace rollscope

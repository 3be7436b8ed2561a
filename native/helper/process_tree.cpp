#include "process_tree.h"

#include <cctype>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <dirent.h>

namespace rollscope {

namespace {

// Fields of /proc/PID/stat behind the name, which may hold blanks and brackets; empty when the process is gone.
std::vector<std::string> statOf(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  if (!std::getline(file, text)) return {};
  const auto end = text.find_last_of(')');
  if (end == std::string::npos) return {};
  std::istringstream rest(text.substr(end + 1));
  std::vector<std::string> fields;
  for (std::string field; rest >> field;) fields.push_back(field);
  return fields;
}

}  // namespace

std::vector<pid_t> descendantsOf(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  std::set<pid_t> ended;
  if (DIR* proc = opendir("/proc")) {
    while (const dirent* entry = readdir(proc)) {
      if (!std::isdigit(static_cast<unsigned char>(entry->d_name[0]))) continue;
      const pid_t process = static_cast<pid_t>(std::stol(entry->d_name));
      const auto fields = statOf(process);
      if (fields.size() < 2) continue;
      children.emplace(static_cast<pid_t>(std::stol(fields[1])), process);
      if (fields[0] == "Z" || fields[0] == "X") ended.insert(process);
    }
    closedir(proc);
  }
  std::vector<pid_t> found;
  std::vector<pid_t> open{root};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    const auto [from, to] = children.equal_range(parent);
    for (auto child = from; child != to; ++child) {
      open.push_back(child->second);
      if (!ended.contains(child->second)) found.push_back(child->second);
    }
  }
  return found;
}

std::string startOf(pid_t process) {
  const auto fields = statOf(process);
  if (fields.size() < 20) return "";
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(boot, id);
  return id + ":" + fields[19];
}

}  // namespace rollscope

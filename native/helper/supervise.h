// Runs one program as the head of a session of its own and stays until it has ended, whatever becomes of the daemon: keeps its
// output, ends what it leaves behind, and writes down how it ended.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rollscope {

struct SuperviseRequest {
  // process.json, exit.json and run.log are written there.
  std::string folder;
  int attempt = 1;
  std::int64_t log_bytes = 4'000'000;
  // Look for the address that a debugger attaches to, tell it on standard output, and keep it out of the log.
  bool debug = false;
  std::vector<std::string> command;
};

// Exit code of the helper: 0 when the program was started.
int supervise(const SuperviseRequest& request);

}  // namespace rollscope

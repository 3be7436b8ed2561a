// The native helper: a small process of its own, so that neither a crash of a driver nor the end of the daemon takes what it does
// along. `supervise` runs one program to its end, `gpus` answers about GPUs.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "gpus.h"
#include "supervise.h"

namespace {

int usage() {
  std::fputs(
      "usage: rollscope-helper supervise --folder DIR --attempt N [--log-bytes N] [--debug] -- PROGRAM [ARGUMENT…]\n"
      "       rollscope-helper gpus\n",
      stderr);
  return 2;
}

}  // namespace

int main(int count, char** words) {
  const std::string mode = count > 1 ? words[1] : "";
  if (mode == "gpus") return rollscope::answerAboutGpus();
  if (mode != "supervise") return usage();
  rollscope::SuperviseRequest request;
  int at = 2;
  for (; at < count && std::string(words[at]) != "--"; ++at) {
    const std::string option = words[at];
    if (option == "--debug") {
      request.debug = true;
      continue;
    }
    if (at + 1 >= count) return usage();
    const char* value = words[++at];
    if (option == "--folder") request.folder = value;
    else if (option == "--attempt") request.attempt = std::atoi(value);
    else if (option == "--log-bytes") request.log_bytes = std::atoll(value);
    else return usage();
  }
  for (++at; at < count; ++at) request.command.emplace_back(words[at]);
  if (request.folder.empty() || request.command.empty()) return usage();
  return rollscope::supervise(request);
}

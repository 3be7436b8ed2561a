// Processes below this one. Only those are ever signalled.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace rollscope {

// Living processes whose line of parents leads to `root`; without it. Empty where the system does not tell.
std::vector<pid_t> descendantsOf(pid_t root);

// When a process started, with the id of the boot: the text by which the daemon tells it from a later one of the same number.
// Empty where the system does not tell.
std::string startOf(pid_t process);

}  // namespace rollscope

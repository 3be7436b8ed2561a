// What the system says about memory: how much it can still give, and how many processes it has ended for want of it.
#pragma once

#include <cstdint>
#include <optional>

namespace rollscope {

// Bytes; none where the system does not tell.
std::optional<std::int64_t> availableMemory();

// Counts of processes ended for want of memory: in this process's control group, and on the whole machine.
struct MemoryKills {
  std::optional<std::int64_t> group;
  std::optional<std::int64_t> machine;
};

MemoryKills memoryKills();

}  // namespace rollscope

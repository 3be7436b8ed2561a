// Picks the kernels for this CPU; ROLLSCOPE_ENGINE_ISA can hold it to fewer instructions than the CPU has.
#include "kernels.h"

#include <cstdlib>
#include <string_view>

namespace rollscope {

namespace isa_v2 {
extern const Kernels table;
}

#if defined(__x86_64__)
namespace isa_v3 {
extern const Kernels table;
}
namespace isa_v4 {
extern const Kernels table;
}

const Kernels& kernels() {
  static const Kernels& chosen = []() -> const Kernels& {
    const char* set = std::getenv("ROLLSCOPE_ENGINE_ISA");
    const std::string_view most = set == nullptr ? "" : set;
    const bool up_to_sse = most == isa_v2::table.name;
    const bool up_to_avx2 = most == isa_v3::table.name || up_to_sse;
    __builtin_cpu_init();
    if (!up_to_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      return isa_v4::table;
    }
    if (!up_to_sse && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) return isa_v3::table;
    return isa_v2::table;
  }();
  return chosen;
}
#else
const Kernels& kernels() { return isa_v2::table; }
#endif

}  // namespace rollscope

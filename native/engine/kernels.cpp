// Picks the kernels for this CPU.
#include "kernels.h"

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
  static const Kernels& chosen = [&]() -> const Kernels& {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      return isa_v4::table;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) return isa_v3::table;
    return isa_v2::table;
  }();
  return chosen;
}
#else
const Kernels& kernels() { return isa_v2::table; }
#endif

}  // namespace rollscope

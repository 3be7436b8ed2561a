// Picks the passes of generation for this CPU.
#include "generation/generation_kernels.h"

#include <string_view>

#include "kernels.h"

namespace rollscope {

#define ROLLSCOPE_DECLARE_GENERATION(isa)                                                                                   \
  namespace isa {                                                                                                           \
  void attend(const AttentionHeads& heads);                                                                                 \
  float largest_logit(const float* logits, int64_t count);                                                                  \
  void exponential_sums(const float* logits, int64_t count, float maximum, float inverse_temperature, float* sums);         \
  void exponential_moments(const float* logits, int64_t count, float maximum, float inverse_temperature, float* sums,       \
                           float* weighted);                                                                                \
  void exponentials(const float* logits, int64_t count, float maximum, float inverse_temperature, float* out);              \
  constexpr GenerationKernels generation_table = {attend, largest_logit, exponential_sums, exponential_moments, exponentials}; \
  }

ROLLSCOPE_DECLARE_GENERATION(isa_v2)
#if defined(__x86_64__)
ROLLSCOPE_DECLARE_GENERATION(isa_v3)
ROLLSCOPE_DECLARE_GENERATION(isa_v4)
#endif

const GenerationKernels& generation_kernels() {
#if defined(__x86_64__)
  static const std::string_view name = kernels().name;
  if (name == "avx512") return isa_v4::generation_table;
  if (name == "avx2") return isa_v3::generation_table;
#endif
  return isa_v2::generation_table;
}

}  // namespace rollscope

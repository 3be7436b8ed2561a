// Random numbers of sampling as a pure function of their name: the number drawn for a position depends on (seed, record,
// call, position) and on nothing else, so neither batch, order nor resumption can change a sampled token.
#pragma once

#include <cstdint>

namespace rollscope {

/// Names the random stream of one call.
struct SamplingKey {
  uint64_t seed = 0;
  uint64_t record = 0;
  uint64_t call = 0;
};

/// Finaliser of the splitmix64 generator (Steele, Lea, Flood 2014): a bijection with full avalanche.
inline uint64_t mix64(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

/// Uniform in [0, 1) with 53 bits. Each word is absorbed after a step of the Weyl sequence, as splitmix64 does.
inline double counter_uniform(const SamplingKey& key, uint64_t position) {
  constexpr uint64_t weyl = 0x9e3779b97f4a7c15ull;
  uint64_t state = mix64(key.seed + weyl);
  state = mix64((state ^ key.record) + weyl);
  state = mix64((state ^ key.call) + weyl);
  state = mix64((state ^ position) + weyl);
  return static_cast<double>(state >> 11) * 0x1.0p-53;
}

}  // namespace rollscope

#include "draw/rng.h"

namespace pagoda {
namespace {

// The paper's constants (its table 2): multipliers of the rounds, and Weyl increments of the key.
constexpr std::uint32_t kMultiplier0 = 0xD2511F53;
constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kKeyIncrement0 = 0x9E3779B9;
constexpr std::uint32_t kKeyIncrement1 = 0xBB67AE85;
constexpr int kNumRounds = 10;

}  // namespace

PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < kNumRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += kKeyIncrement0;
    key[1] += kKeyIncrement1;
  }
  return counter;
}

double random_uniform(const RandomKey& key) {
  const PhiloxCounter words = philox4x32(
      {static_cast<std::uint32_t>(key.position), static_cast<std::uint32_t>(key.sample_index),
       static_cast<std::uint32_t>(key.purpose), 0},
      {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)});
  const std::uint64_t bits = (std::uint64_t{words[0]} << 32) | words[1];
  // A number of 52 bits plus a half is exact in a double; with 53 bits the largest would round to
  // 1.
  return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
}

}  // namespace pagoda

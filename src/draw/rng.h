// Random numbers as a function of their place in the output, without state. So an answer never
// depends on the batch, on chunk borders or on earlier work (preemption, replays).
//
// Philox 4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011. Thread-safe.
#pragma once

#include <array>
#include <cstdint>

namespace pagoda {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

// Computes the paper's function with ten rounds, bit for bit.
PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key);

// The purpose that a number is drawn for. Draws for different purposes at one position are
// independent.
enum class RandomPurpose : std::uint32_t { kSampleToken = 0, kXtcCoin = 1 };

// The place of a draw.
struct RandomKey {
  std::uint64_t seed = 0;
  int sample_index = 0;
  int position = 0;  // the drawn token's, in the sequence
  RandomPurpose purpose = RandomPurpose::kSampleToken;
};

// Returns a uniform number among the 2^52 midpoints (k + 0.5) * 2^-52: strictly inside (0, 1).
double random_uniform(const RandomKey& key);

}  // namespace pagoda

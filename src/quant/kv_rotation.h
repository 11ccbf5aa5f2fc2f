// The rotation of the KV cache's codes: a Walsh-Hadamard transform of an entry. It spreads outliers
// in a few dimensions over all dimensions, so that the scale can be smaller (QuaRot: Ashkboos et
// al., 2024, arXiv:2404.00456).
//
// An entry [head_dim] is split into runs, whose length is the largest power of two that divides
// head_dim. In each run, for half = 1, 2, 4, ... below its length: (x[i], x[i + half]) becomes
// (x[i] + x[i + half], x[i] - x[i + half]). This is not normalised: two rotations multiply by the
// run's length, so scores and outputs are divided by it. Every backend adds in this order, so an
// entry has the same bits everywhere.
#pragma once

#include <cstdint>
#include <span>

namespace pagoda {

// Returns the length of the runs: 64 for a head_dim of 64, 32 for 96, 16 for 80.
constexpr std::int64_t kv_rotation_width(std::int64_t head_dim) {
  return head_dim & -head_dim;
}

// Rotates an entry in place.
template <typename T>
void rotate_kv_entry(std::span<T> entry) {
  const std::int64_t size = static_cast<std::int64_t>(entry.size());
  const std::int64_t width = kv_rotation_width(size);
  for (std::int64_t half = 1; half < width; half *= 2) {
    for (std::int64_t run = 0; run < size; run += 2 * half) {
      for (std::int64_t i = run; i < run + half; ++i) {
        const T a = entry[i], b = entry[i + half];
        entry[i] = a + b;
        entry[i + half] = a - b;
      }
    }
  }
}

}  // namespace pagoda

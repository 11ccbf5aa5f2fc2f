// The rotation of the KV cache's codes: a Walsh-Hadamard transform of an entry, which spreads what
// a few dimensions would else take of a scale over all (QuaRot: Ashkboos et al., 2024,
// arXiv:2404.00456).
//
// An entry [head_dim] is taken in runs of the largest power of two that divides head_dim. In each,
// for half = 1, 2, 4, ... below the run: (x[i], x[i + half]) becomes (x[i] + x[i + half],
// x[i] - x[i + half]). Nothing is divided: two rotations multiply by the run's length, which a score
// and an output divide by. Sums of an entry are in this order on every backend, so that its bits are
// the same everywhere.
#pragma once

#include <cstdint>
#include <span>

namespace pagoda {

// Returns the length of the runs: 64 of 64, 32 of 96, 16 of 80.
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

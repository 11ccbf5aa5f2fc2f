// One head in the registers of a SIMD group: functions that read it as pairs (a, b), norm it,
// rotate the pairs and write it. rope, rms_norm_rope and rope_kv_write share them.
//
// A lane has kRuns runs of kRun consecutive pairs. If the head is wide enough, a lane reads 16
// bytes of a run at once.
#ifndef PAGODA_ROPE_HEAD_METAL_H
#define PAGODA_ROPE_HEAD_METAL_H

#include "ops/kv_write/kv_entry.metal.h"
#include "ops/rms_norm/float_run.metal.h"

// The sizes of a lane's share of a head.
template <int kHeadDim>
struct HeadSplit {
  enum {
    kPairs = kHeadDim / 2,
    kRun = kPairs % 128 == 0 ? 4 : (kPairs % 64 == 0 ? 2 : 1),
    kRuns = (kPairs + 32 * kRun - 1) / (32 * kRun),
    kShare = kRuns * kRun
  };
};

// The pairs of a head. The first num_rotated pairs, of its first elements, are rotated. The
// remaining elements are paired in the same way: by halves, or neighbours.
struct HeadPairs {
  bool is_halves;
  int num_rotated;
};

inline HeadPairs head_pairs(int is_halves, int num_rotated) {
  HeadPairs pairs;
  pairs.is_halves = is_halves != 0;
  pairs.num_rotated = num_rotated;
  return pairs;
}

// Returns the element that is the first a of a run of pairs, which begins with `pair`. Only for
// halves.
template <int kHeadDim>
inline int place_of_a(HeadPairs pairs, int pair) {
  return pair < pairs.num_rotated ? pair : pair + pairs.num_rotated;
}
template <int kHeadDim>
inline int place_of_b(HeadPairs pairs, int pair) {
  return pair + (pair < pairs.num_rotated ? pairs.num_rotated : kHeadDim / 2);
}

// Returns the first pair of a lane's run. If it is kPairs or more, there is no such run.
template <int kHeadDim>
inline int first_pair(int run, int lane) {
  return (run * 32 + lane) * HeadSplit<kHeadDim>::kRun;
}

// Reads a run of pairs, all of them rotated or none. is_aligned: the head is at a multiple of 16
// bytes, or of the bytes that a lane reads at once if these are fewer.
template <int kHeadDim>
inline void load_pairs(device const float* head, HeadPairs pairs, bool is_aligned, int pair,
                       thread float* a, thread float* b) {
  const int kRun = HeadSplit<kHeadDim>::kRun;
  if (pairs.is_halves) {
    load_run<kRun>(head + place_of_a<kHeadDim>(pairs, pair), is_aligned, a);
    load_run<kRun>(head + place_of_b<kHeadDim>(pairs, pair), is_aligned, b);
    return;
  }
  float both[2 * kRun];
  load_run<2 * kRun>(head + 2 * pair, is_aligned, both);
  for (int i = 0; i < kRun; ++i) {
    a[i] = both[2 * i];
    b[i] = both[2 * i + 1];
  }
}

// Reads a lane's kShare pairs.
template <int kHeadDim>
inline void load_head(device const float* head, HeadPairs pairs, bool is_aligned, int lane,
                      thread float* a, thread float* b) {
  const int kRun = HeadSplit<kHeadDim>::kRun;
#pragma unroll
  for (int run = 0; run < HeadSplit<kHeadDim>::kRuns; ++run) {
    const int pair = first_pair<kHeadDim>(run, lane);
    if (pair < kHeadDim / 2) {
      load_pairs<kHeadDim>(head, pairs, is_aligned, pair, a + run * kRun, b + run * kRun);
    }
  }
}

// Norms the head, as rms_norm does. weight [kHeadDim], at a multiple of 16 bytes.
template <int kHeadDim>
inline void norm_head(device const float* weight, float eps, HeadPairs pairs, int lane,
                      thread float* a, thread float* b) {
  const int kRun = HeadSplit<kHeadDim>::kRun;
  float squares = 0.0f;
#pragma unroll
  for (int run = 0; run < HeadSplit<kHeadDim>::kRuns; ++run) {
    if (first_pair<kHeadDim>(run, lane) < kHeadDim / 2) {
      for (int i = run * kRun; i < (run + 1) * kRun; ++i) {
        squares = fma(a[i], a[i], squares);
        squares = fma(b[i], b[i], squares);
      }
    }
  }
  const float mean = simd_sum(squares) / float(kHeadDim);
  const float inverse = 1.0f / precise::sqrt(mean + eps);
#pragma unroll
  for (int run = 0; run < HeadSplit<kHeadDim>::kRuns; ++run) {
    const int pair = first_pair<kHeadDim>(run, lane);
    if (pair < kHeadDim / 2) {
      float gain_a[kRun];
      float gain_b[kRun];
      load_pairs<kHeadDim>(weight, pairs, true, pair, gain_a, gain_b);
      for (int i = 0; i < kRun; ++i) {
        a[run * kRun + i] = a[run * kRun + i] * inverse * gain_a[i];
        b[run * kRun + i] = b[run * kRun + i] * inverse * gain_b[i];
      }
    }
  }
}

// Rotates each pair that has an angle. angles [2, num_rotated]: cosines, then sines.
template <int kHeadDim>
inline void rotate_head(device const float* angles, HeadPairs pairs, int lane, thread float* a,
                        thread float* b) {
  const int kRun = HeadSplit<kHeadDim>::kRun;
#pragma unroll
  for (int run = 0; run < HeadSplit<kHeadDim>::kRuns; ++run) {
    const int pair = first_pair<kHeadDim>(run, lane);
    if (pair < pairs.num_rotated) {
      float cosines[kRun];
      float sines[kRun];
      load_run<kRun>(angles + pair, true, cosines);
      load_run<kRun>(angles + pairs.num_rotated + pair, true, sines);
      for (int i = 0; i < kRun; ++i) {
        const float before_a = a[run * kRun + i];
        const float before_b = b[run * kRun + i];
        a[run * kRun + i] = before_a * cosines[i] - before_b * sines[i];
        b[run * kRun + i] = before_b * cosines[i] + before_a * sines[i];
      }
    }
  }
}

// Writes the head as floats, or in a cache's type.
template <int kHeadDim, typename T>
inline void store_head(thread const float* a, thread const float* b, HeadPairs pairs, int lane,
                       device T* head) {
  const int kRun = HeadSplit<kHeadDim>::kRun;
#pragma unroll
  for (int run = 0; run < HeadSplit<kHeadDim>::kRuns; ++run) {
    const int pair = first_pair<kHeadDim>(run, lane);
    if (pair < kHeadDim / 2) {
      if (pairs.is_halves) {
        store_entry<kRun>(a + run * kRun, head + place_of_a<kHeadDim>(pairs, pair));
        store_entry<kRun>(b + run * kRun, head + place_of_b<kHeadDim>(pairs, pair));
      } else {
        float both[2 * kRun];
        for (int i = 0; i < kRun; ++i) {
          both[2 * i] = a[run * kRun + i];
          both[2 * i + 1] = b[run * kRun + i];
        }
        store_entry<2 * kRun>(both, head + 2 * pair);
      }
    }
  }
}

#endif  // PAGODA_ROPE_HEAD_METAL_H

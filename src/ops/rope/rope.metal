// rope_angles and rope on Apple GPUs.
#include "backend/mlx/kernel.metal.h"
#include "ops/rope/rope_angle.metal.h"
#include "ops/rope/rope_head.metal.h"
#include "ops/rope/rope_metal.h"

// A thread an angle. positions [tokens], inv_freq [pairs], out [tokens, 2, pairs]
[[kernel]] void rope_angles(device const int* positions [[buffer(0)]],
                            device const float* inv_freq [[buffer(1)]],
                            device float* out [[buffer(2)]],
                            constant RopeAnglesParameters& p [[buffer(3)]], PAGODA_THREAD) {
  const int pair = int(group.x) * 32 + int(lane);
  const int token = int(group.y) * 8 + int(simd_group);
  if (pair >= p.num_pairs || token >= p.num_tokens) return;
  const TurnedAngle angle = turned_angle(float(positions[token]), inv_freq[pair]);
  device float* const cosines = out + size_t(token) * 2 * p.num_pairs;
  cosines[pair] = sine_of_turned(angle.rest, angle.quarters + 1);
  cosines[p.num_pairs + pair] = sine_of_turned(angle.rest, angle.quarters);
}

// A SIMD group a head. x at strides; angles [tokens, 2, kHeadDim / 2]; out [tokens, heads, kHeadDim]
template <int kHeadDim>
[[kernel]] void rope(device const float* x [[buffer(0)]], device const float* angles [[buffer(1)]],
                     device float* out [[buffer(2)]], constant RopeParameters& p [[buffer(3)]],
                     PAGODA_THREAD) {
  const int head = int(group.x) * 8 + int(simd_group);
  const size_t token = group.y;
  if (head >= p.num_heads) return;
  const bool is_halves = p.is_halves != 0;
  float a[HeadSplit<kHeadDim>::kShare];
  float b[HeadSplit<kHeadDim>::kShare];
  load_head<kHeadDim>(x + token * p.token_stride + size_t(head) * p.head_stride, is_halves,
                      p.is_aligned != 0, int(lane), a, b);
  turn_head<kHeadDim>(angles + token * kHeadDim, int(lane), a, b);
  store_head<kHeadDim>(a, b, is_halves, int(lane), out + (token * p.num_heads + head) * kHeadDim);
}

// rope_angles and rope on Apple GPUs.
#include "backend/gpu/kernel.metal.h"
#include "ops/rope/rope_angle.metal.h"
#include "ops/rope/rope_head.metal.h"
#include "ops/rope/rope_metal.h"

// Each thread takes an angle. positions [tokens], inv_freq [pairs], out [tokens, 2, pairs]
[[kernel]] void rope_angles(device const int* positions [[buffer(0)]],
                            device const float* inv_freq [[buffer(1)]],
                            device float* out [[buffer(2)]],
                            constant RopeAnglesParameters& p [[buffer(3)]], PAGODA_THREAD) {
  const int pair = int(group.x) * 32 + int(lane);
  const int token = int(group.y) * 8 + int(simd_group);
  if (pair >= p.num_pairs || token >= p.num_tokens) return;
  const ReducedAngle angle = reduced_angle(float(positions[token]), inv_freq[pair]);
  device float* const cosines = out + size_t(token) * 2 * p.num_pairs;
  float factor = p.factor;
  if (p.growth != 0.0f) {
    const float periods = float(positions[token] / p.growth_positions);
    factor *= 1.0f + p.growth * precise::log(1.0f + periods);
  }
  cosines[pair] = sine_of_reduced(angle.rest, angle.quarters + 1) * factor;
  cosines[p.num_pairs + pair] = sine_of_reduced(angle.rest, angle.quarters) * factor;
}

// Each SIMD group takes a head. x at strides; angles [tokens, 2, num_pairs]; out [tokens, heads,
// kHeadDim]
template <int kHeadDim>
[[kernel]] void rope(device const float* x [[buffer(0)]], device const float* angles [[buffer(1)]],
                     device float* out [[buffer(2)]], constant RopeParameters& p [[buffer(3)]],
                     PAGODA_THREAD) {
  const int head = int(group.x) * 8 + int(simd_group);
  const size_t token = group.y;
  if (head >= p.num_heads) return;
  const HeadPairs pairs = head_pairs(p.is_halves, p.num_pairs);
  float a[HeadSplit<kHeadDim>::kShare];
  float b[HeadSplit<kHeadDim>::kShare];
  load_head<kHeadDim>(x + token * p.token_stride + size_t(head) * p.head_stride, pairs,
                      p.is_aligned != 0, int(lane), a, b);
  rotate_head<kHeadDim>(angles + token * 2 * p.num_pairs, pairs, int(lane), a, b);
  store_head<kHeadDim>(a, b, pairs, int(lane), out + (token * p.num_heads + head) * kHeadDim);
}

// route on Apple GPUs: a SIMD group for each token. Expert e is expert e / 32 of lane e % 32.
#include "backend/gpu/kernel.metal.h"
#include "ops/route/route_metal.h"

enum { kNoCandidate = 0x7fffffff };

// An expert, or a group of experts, and what it is compared by.
struct Candidate {
  float value;
  int id;  // kNoCandidate: there is none
};

inline bool is_better(Candidate a, Candidate b) {
  return a.id != kNoCandidate && (b.id == kNoCandidate || a.value > b.value);
}

// Returns the best candidate of all lanes; the lowest id wins a tie.
inline Candidate best_of_lanes(Candidate own) {
  const float value = own.id == kNoCandidate ? -INFINITY : own.value;
  const float best = simd_max(value);
  return {best, simd_min(value == best ? own.id : kNoCandidate)};
}

// The experts of one lane: kExperts of the token's.
template <int kExperts>
struct LaneExperts {
  float scores[kExperts];
  float values[kExperts];  // by which experts are compared
  uint open;               // bit i: expert i may be chosen

  // Returns the lane's best open expert among [first, end), numbered as the token's.
  Candidate best(int first, int end, uint lane) const {
    Candidate result = {0.0f, kNoCandidate};
#pragma unroll
    for (int i = 0; i < kExperts; ++i) {
      const int id = 32 * i + int(lane);
      const Candidate other = {values[i],
                               (open >> i & 1) != 0 && id >= first && id < end ? id : kNoCandidate};
      if (is_better(other, result)) result = other;
    }
    return result;
  }

  void close(int id, uint lane) {
    if (id != kNoCandidate && uint(id) % 32 == lane) open &= ~(1u << (uint(id) / 32));
  }
};

// Returns how good each lane's group is: the sum of its two best experts. `experts` as before.
template <int kExperts>
inline float group_value(LaneExperts<kExperts> experts, constant RouteParameters& p, uint lane) {
  const int size = p.num_experts / p.num_groups;
  float own = 0.0f;
  for (int group = 0; group < p.num_groups; ++group) {
    const Candidate first = best_of_lanes(experts.best(group * size, (group + 1) * size, lane));
    experts.close(first.id, lane);
    const Candidate second = best_of_lanes(experts.best(group * size, (group + 1) * size, lane));
    if (group == int(lane)) own = size > 1 ? first.value + second.value : first.value;
  }
  return own;
}

// Closes the experts of all but the best groups.
template <int kExperts>
inline void drop_groups(thread LaneExperts<kExperts>& experts, constant RouteParameters& p,
                        uint lane) {
  const float value = group_value(experts, p, lane);
  bool is_open = int(lane) < p.num_groups;
  uint chosen = 0;  // bit g: group g
  for (int i = 0; i < p.num_chosen_groups; ++i) {
    const Candidate best = best_of_lanes({value, is_open ? int(lane) : kNoCandidate});
    if (best.id == int(lane)) is_open = false;
    chosen |= 1u << best.id;
  }
  const int size = p.num_experts / p.num_groups;
#pragma unroll
  for (int i = 0; i < kExperts; ++i) {
    const int id = 32 * i + int(lane);
    if (id < p.num_experts && (chosen >> (id / size) & 1) == 0) experts.open &= ~(1u << i);
  }
}

// Returns e^(value - largest) over their sum, for values that are open in lanes.
inline float softmax_of_lanes(float value, bool is_open) {
  const float largest = simd_max(is_open ? value : -INFINITY);
  const float power = is_open ? precise::exp(value - largest) : 0.0f;
  return power / simd_sum(power);
}

template <int kExperts>
inline void set_softmax(thread LaneExperts<kExperts>& experts, int num_experts, uint lane) {
  float largest = -INFINITY;
#pragma unroll
  for (int i = 0; i < kExperts; ++i) {
    if (32 * i + int(lane) < num_experts) largest = max(largest, experts.scores[i]);
  }
  largest = simd_max(largest);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kExperts; ++i) {
    const bool is_there = 32 * i + int(lane) < num_experts;
    experts.scores[i] = is_there ? precise::exp(experts.scores[i] - largest) : 0.0f;
    sum += experts.scores[i];
  }
  sum = simd_sum(sum);
#pragma unroll
  for (int i = 0; i < kExperts; ++i) experts.scores[i] = experts.scores[i] / sum;
}

// kExperts: experts of a lane, enough for all.
// logits [tokens, experts], bias and scales [experts], chosen and weights [tokens, num_chosen]
template <int kExperts>
[[kernel]] void route(device const float* logits [[buffer(0)]],
                      device const float* bias [[buffer(1)]],
                      device const float* scales [[buffer(2)]], device int* chosen [[buffer(3)]],
                      device float* weights [[buffer(4)]],
                      constant RouteParameters& p [[buffer(5)]], PAGODA_THREAD) {
  const int token = 8 * int(group.x) + int(simd_group);
  if (token >= p.num_tokens) return;
  LaneExperts<kExperts> experts;
  experts.open = 0;
#pragma unroll
  for (int i = 0; i < kExperts; ++i) {
    const int id = 32 * i + int(lane);
    float logit = 0.0f;
    if (id < p.num_experts) {
      logit = logits[size_t(token) * p.num_experts + id];
      experts.open |= 1u << i;
    }
    if (p.logit_cap != 0.0f) logit = p.logit_cap * precise::tanh(logit / p.logit_cap);
    experts.scores[i] = logit;
    experts.values[i] = logit;
  }
  if (p.is_sigmoid != 0) {
#pragma unroll
    for (int i = 0; i < kExperts; ++i) {
      experts.scores[i] = 1.0f / (1.0f + precise::exp(-experts.scores[i]));
    }
  } else if (p.is_softmax_of_chosen == 0) {
    set_softmax(experts, p.num_experts, lane);
  }
  const bool compares_scores = p.has_bias != 0 || p.num_groups > 1;
#pragma unroll
  for (int i = 0; i < kExperts; ++i) {
    if (compares_scores) experts.values[i] = experts.scores[i];
    const int id = 32 * i + int(lane);
    if (p.has_bias != 0 && id < p.num_experts) experts.values[i] += bias[id];
    if (!(experts.values[i] > -INFINITY)) experts.values[i] = -INFINITY;  // NaN, too
  }
  if (p.num_chosen_groups < p.num_groups) drop_groups(experts, p, lane);
  // Lane i keeps the i-th best expert.
  int own_id = 0;
  float own_score = 0.0f;
  for (int i = 0; i < p.num_chosen; ++i) {
    const Candidate best = best_of_lanes(experts.best(0, p.num_experts, lane));
    float score = 0.0f;
#pragma unroll
    for (int j = 0; j < kExperts; ++j) {
      if (best.id / 32 == j) score = experts.scores[j];
    }
    score = simd_shuffle(score, ushort(best.id % 32));
    experts.close(best.id, lane);
    if (i == int(lane)) {
      own_id = best.id;
      own_score = score;
    }
  }
  const bool is_chosen = int(lane) < p.num_chosen;
  if (p.is_softmax_of_chosen != 0) own_score = softmax_of_lanes(own_score, is_chosen);
  if (p.is_normalised != 0) {
    own_score = own_score / (max(simd_sum(own_score), p.least_sum) + p.sum_offset);
  }
  if (!is_chosen) return;
  const size_t place = size_t(token) * p.num_chosen + lane;
  chosen[place] = own_id;
  weights[place] = own_score * p.factor * (p.has_scales != 0 ? scales[own_id] : 1.0f);
}

// Limits of a configuration's numbers, whatever file they come from. Every known model is within
// them. A product of two limits neither overflows nor asks for absurd memory before the tensors are
// looked at.
#pragma once

#include <cstdint>

#include "core/status.h"
#include "model/model_config.h"

namespace pagoda {

struct IntegerRange {
  std::int64_t min;
  std::int64_t max;
};
struct NumberRange {
  double min;
  double max;
};

inline constexpr IntegerRange kLayerRange{1, 1024};
inline constexpr IntegerRange kHeadRange{1, 1024};
inline constexpr IntegerRange kHeadDimRange{2, 1024};
inline constexpr IntegerRange kHiddenRange{1, 1 << 20};
inline constexpr IntegerRange kIntermediateRange{1, 1 << 22};
inline constexpr IntegerRange kExpertRange{1, kMostExperts};
inline constexpr IntegerRange kVocabRange{1, 1 << 20};
inline constexpr IntegerRange kPositionRange{1, 1 << 28};
inline constexpr NumberRange kEpsilonRange{1e-20, 1};
inline constexpr NumberRange kThetaRange{1, 1e12};
inline constexpr NumberRange kRopeFactorRange{1e-6, 1e6};
inline constexpr NumberRange kClampRange{1e-6, 1e6};  // of OLMoE's clip_qkv
inline constexpr NumberRange kTemperatureRange{0, 1000};
inline constexpr NumberRange kProbabilityRange{0, 1};
inline constexpr NumberRange kMirostatTauRange{0, 100};
inline constexpr NumberRange kPenaltyRange{1e-6, 1000};
inline constexpr IntegerRange kTopKRange{-1, 1 << 24};  // -1 and 0: off

// Checks that fields agree: kv_heads divides heads, and a layer has as many kv_heads as the layer
// whose cache it reads. Checks also that each head_dim is even and in range, and that experts are in
// groups of equal size, of which a token's are enough.
Status check_consistency(const ModelConfig& config);

// Sets each of the last num_shared layers to read the cache of an earlier layer. This is the last
// unshared layer that also has a window, or also has none. Returns false if there is no such layer.
bool share_caches(ModelConfig& config, int num_shared);

}  // namespace pagoda

// Limits of a configuration's numbers, whatever file they come from. They are wide enough for every
// model there is. They are so narrow that a product of two of them neither overflows nor asks for
// absurd memory before the tensors are looked at.
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
inline constexpr IntegerRange kVocabRange{1, 1 << 20};
inline constexpr IntegerRange kPositionRange{1, 1 << 28};
inline constexpr NumberRange kEpsilonRange{1e-20, 1};
inline constexpr NumberRange kThetaRange{1, 1e12};
inline constexpr NumberRange kRopeFactorRange{1e-6, 1e6};
inline constexpr NumberRange kTemperatureRange{0, 1000};
inline constexpr NumberRange kProbabilityRange{0, 1};
inline constexpr NumberRange kMirostatTauRange{0, 100};
inline constexpr NumberRange kPenaltyRange{1e-6, 1000};
inline constexpr IntegerRange kTopKRange{-1, 1 << 24};  // -1 and 0: off

// Checks what several fields can only be wrong in together: heads that kv_heads do not divide, an
// odd head_dim.
Status check_consistency(const ModelConfig& config);

// Has the last num_shared layers read the cache of the last layer before them that has a window, or
// none, as they do. False: there is no such layer.
bool share_caches(ModelConfig& config, int num_shared);

}  // namespace pagoda

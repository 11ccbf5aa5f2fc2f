// XTC ("exclude top choices"): of the tokens that are likely enough all but the least likely go, so
// that the obvious continuation is not always taken. p-e-w, text-generation-webui pull request
// 6335, 2024; names and meaning as in llama.cpp.
#pragma once

#include "sampling/host/candidates.h"

namespace pagoda {

// Drops, where two candidates or more have a share of the weight of at least `threshold`, all of
// those but the least likely; of equals the highest id stays. The kept are moved to the front;
// returns how many they are. Whether a row is filtered at all is a coin that the caller throws.
std::size_t exclude_top_choices(const Candidates& candidates, float threshold);

}  // namespace pagoda

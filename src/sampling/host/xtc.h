// XTC ("exclude top choices"): of the tokens that are likely enough, drops all except the least
// likely, so that the obvious continuation is not always chosen. p-e-w, text-generation-webui pull
// request 6335, 2024; names and meaning as in llama.cpp.
#pragma once

#include "sampling/host/candidates.h"

namespace pagoda {

// Drops the candidates whose share of the weight is at least `threshold`, except the least likely
// of them, the highest id among equals. Moves the others to the front and returns their number. The
// caller's coin decides whether XTC applies to a row.
std::size_t exclude_top_choices(const Candidates& candidates, float threshold);

}  // namespace pagoda

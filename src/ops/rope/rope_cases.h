// Angles of case tokens, for the case lists of the ops that rotate heads.
#pragma once

#include <span>

#include "ops/rope/rope.h"
#include "tensor/exec.h"

namespace pagoda {

// Returns [head_dim / 2] float32, of the usual base of 10,000.
Tensor upload_inverse_frequencies(Exec& exec, int head_dim);
// Returns the angles of the tokens' positions, which are `first_position` + each: [tokens, 2,
// head_dim / 2] float32.
Tensor case_angles(Exec& exec, std::span<const int> tokens, int first_position, int head_dim,
                   const RopeAnglesArgs& args = {});

}  // namespace pagoda

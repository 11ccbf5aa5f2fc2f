// Angles of case tokens, for the case lists of the ops that rotate heads.
#pragma once

#include <span>

#include "ops/rope/rope.h"
#include "tensor/exec.h"

namespace pagoda {

// Returns [head_dim / 2] float32, for the usual base of 10,000.
Tensor upload_inverse_frequencies(Exec& exec, int head_dim);
// Returns the angles of the tokens, [tokens, 2, head_dim / 2] float32. The position of token t is
// `first_position` + t.
Tensor case_angles(Exec& exec, std::span<const int> tokens, int first_position, int head_dim,
                   const RopeAnglesArgs& args = {});

}  // namespace pagoda

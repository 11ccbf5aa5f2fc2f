// Results of the reference, which tests of backends, instruction sets and properties compare with.
#pragma once

#include <vector>

#include "ops/op_cases.h"

namespace pagoda {

// Returns the reference's outputs for all tokens of a case. They are computed once per process,
// because the reference is slower than the bodies under test. Not thread-safe.
const std::vector<std::vector<float>>& reference_outputs(const OpCase& op_case);

}  // namespace pagoda

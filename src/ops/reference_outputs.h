// Results of the reference, which tests of backends, instruction sets and properties compare with.
#pragma once

#include <vector>

#include "ops/op_cases.h"

namespace pagoda {

// Returns what the reference computes of all of a case's tokens: once in this process, as it takes
// longer than what it is compared with. Not thread-safe.
const std::vector<std::vector<float>>& reference_outputs(const OpCase& op_case);

}  // namespace pagoda

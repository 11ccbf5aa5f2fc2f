// All op cases of the project, and which backend has which op.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "ops/op_case.h"

namespace pagoda {

// Returns the cases of all ops. Each file OP/OP_cases.cc defines std::vector<OpCase> OP_cases();
// this function is generated from the folders' names (all_op_cases.cc.in).
std::vector<OpCase> all_op_cases();

struct OpSupport {
  std::string op;
  int num_cases = 0;
  std::array<bool, kNumBackends> is_built = {};  // indexed by Backend: whether it has a body
};
// Returns one entry for each op.
std::vector<OpSupport> op_support();

}  // namespace pagoda

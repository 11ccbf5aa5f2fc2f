// All op cases of the project, and which backend has which op.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "ops/op_case.h"

namespace pagoda {

// Returns the lists of all ops' folders: each OP/OP_cases.cc defines std::vector<OpCase> OP_cases().
// Generated from the folders' names (all_op_cases.cc.in).
std::vector<OpCase> all_op_cases();

struct OpSupport {
  std::string op;
  int num_cases = 0;
  std::array<bool, kNumBackends> is_built = {};  // by Backend: whether it has a body
};
// Returns one entry an op, by name.
std::vector<OpSupport> op_support();

}  // namespace pagoda

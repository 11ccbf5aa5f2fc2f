// All op cases of the project, and the ops that they are of.
#pragma once

#include <string>
#include <vector>

#include "ops/op_case.h"

namespace pagoda {

// Returns the cases of all ops. Each file OP/OP_cases.cc defines std::vector<OpCase> OP_cases();
// this function is generated from the folders' names (all_op_cases.cc.in).
std::vector<OpCase> all_op_cases();

struct ListedOp {
  std::string op;
  int num_cases = 0;
};
// Returns one entry for each op.
std::vector<ListedOp> listed_ops();

}  // namespace pagoda

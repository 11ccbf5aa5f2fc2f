#include "ops/op_cases.h"

namespace pagoda {

std::vector<ListedOp> listed_ops() {
  std::vector<ListedOp> support;
  for (const OpCase& op_case : all_op_cases()) {
    if (support.empty() || support.back().op != op_case.op) support.push_back({.op = op_case.op});
    ++support.back().num_cases;
  }
  return support;
}

}  // namespace pagoda

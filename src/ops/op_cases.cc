#include "ops/op_cases.h"

#include "ops/op_bodies.h"

namespace pagoda {

std::vector<OpSupport> op_support() {
  std::vector<OpSupport> support;
  for (const OpCase& op_case : all_op_cases()) {
    if (support.empty() || support.back().op != op_case.op) {
      support.push_back({.op = op_case.op});
      for (const Backend backend : kBackends) {
        support.back().is_built[static_cast<std::size_t>(backend)] =
            op_has_body(op_case.op, backend);
      }
    }
    ++support.back().num_cases;
  }
  return support;
}

}  // namespace pagoda

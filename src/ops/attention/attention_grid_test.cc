// Attention on the grid that other projects test on, with decodes, short parts and prompt chunks in
// one call: every backend is near the reference.
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "ops/attention/attention_cases.h"

namespace pagoda {
namespace {

TEST(AttentionGrid, EveryBackendIsNearTheReference) {
  const auto reference = make_exec({.backend = Backend::kReference}).value();
  for (const AttentionShape& shape : attention_grid()) {
    const OpCase op_case = make_attention_case(shape);
    const std::vector<int> tokens = all_tokens(op_case);
    const auto expected = run_case(*reference, op_case, tokens).value();
    for (const Backend backend : {Backend::kCpu, Backend::kMlx}) {
      if (!backend_is_here(backend)) continue;
      SCOPED_TRACE(fmt::format("{} on {}", op_case.description, backend_name(backend)));
      const auto exec = make_exec({.backend = backend, .num_threads = 2}).value();
      const auto actual = run_case(*exec, op_case, tokens).value();
      ASSERT_EQ(actual.size(), 1u);
      EXPECT_LE(relative_error(actual[0], expected[0]), op_case.tolerance.of(backend));
    }
  }
}

}  // namespace
}  // namespace pagoda

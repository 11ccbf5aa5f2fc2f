#include "ops/op_cases.h"
#include "ops/resolve_tokens/resolve_tokens.h"

namespace pagoda {
namespace {

// Makes a case in which every third id is the host's and every fifth row drew none.
OpCase make_resolve_tokens_case(int tokens, int rows) {
  OpCase result{.op = "resolve_tokens",
                .description = fmt::format("{} of {} rows", tokens, rows),
                .num_tokens = tokens,
                .tolerance = {.cpu = 0, .mlx = 0, .cuda = 0}};
  result.prepare = [=](Exec& exec, std::span<const int> wanted) -> Result<CaseRun> {
    const auto n = static_cast<std::int64_t>(wanted.size());
    std::vector<std::int32_t> ids, sources, drawn;
    for (const int i : wanted) {
      ids.push_back(1000 + i);
      sources.push_back(i % 3 == 0 ? -1 : (7 * i) % rows);
    }
    for (int row = 0; row < rows; ++row) drawn.push_back(row % 5 == 4 ? -1 - row % 2 : 3 * row);
    return CaseRun([&exec, ids = exec.upload<std::int32_t>(ids, {n}),
                    sources = exec.upload<std::int32_t>(sources, {n}),
                    drawn = exec.upload<std::int32_t>(drawn, {rows})] {
      return std::vector<Tensor>{resolve_tokens(exec, ids, sources, drawn)};
    });
  };
  result.bytes = 12.0 * tokens;
  return result;
}

}  // namespace

std::vector<OpCase> resolve_tokens_cases() {
  return {make_resolve_tokens_case(1, 1), make_resolve_tokens_case(2, 1),
          make_resolve_tokens_case(100, 17)};
}

}  // namespace pagoda

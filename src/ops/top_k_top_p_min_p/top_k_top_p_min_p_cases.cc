#include "ops/op_cases.h"
#include "ops/sample/row_cases.h"

namespace pagoda {
namespace {

OpCase make_top_k_top_p_min_p_case(int rows, int vocab_size, bool is_large = false) {
  OpCase result{.op = "top_k_top_p_min_p",
                .description = fmt::format("{} x {}", rows, vocab_size),
                .num_tokens = rows,
                .tolerance = {.cpu = 0, .mlx = 0, .cuda = 0},
                .bytes = 4.0 * rows * vocab_size,
                .is_large = is_large};
  result.prepare = [=](Exec& exec, std::span<const int> wanted) -> Result<CaseRun> {
    return CaseRun([&exec, logits = upload_case_logits(exec, wanted, vocab_size),
                    inverse = upload_case_temperatures(exec, wanted, /*with_greedy=*/false),
                    filters = upload_case_filters(exec, wanted, vocab_size)] {
      const KeptTokens kept = top_k_top_p_min_p(exec, logits, inverse, filters);
      return std::vector<Tensor>{kept.least, kept.num_ties};
    });
  };
  return result;
}

}  // namespace

std::vector<OpCase> top_k_top_p_min_p_cases() {
  return {make_top_k_top_p_min_p_case(1, 1), make_top_k_top_p_min_p_case(40, 7),
          make_top_k_top_p_min_p_case(64, 129), make_top_k_top_p_min_p_case(24, 3000),
          make_top_k_top_p_min_p_case(8, 151936, true)};
}

}  // namespace pagoda

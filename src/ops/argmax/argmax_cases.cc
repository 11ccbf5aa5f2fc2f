#include "ops/argmax/argmax.h"
#include "ops/op_cases.h"
#include "ops/sample/row_cases.h"

namespace pagoda {
namespace {

OpCase make_argmax_case(int rows, int vocab_size, bool is_large = false) {
  OpCase result{.op = "argmax",
                .description = fmt::format("{} x {}", rows, vocab_size),
                .num_tokens = rows,
                .tolerance = {.cpu = 0, .mlx = 0, .cuda = 0},
                .bytes = 4.0 * rows * vocab_size,
                .is_large = is_large};
  result.prepare = [=](Exec& exec, std::span<const int> wanted) -> Result<CaseRun> {
    return CaseRun([&exec, logits = upload_case_logits(exec, wanted, vocab_size)] {
      return std::vector<Tensor>{argmax(exec, logits)};
    });
  };
  return result;
}

}  // namespace

std::vector<OpCase> argmax_cases() {
  return {make_argmax_case(1, 1),           make_argmax_case(9, 7),
          make_argmax_case(20, 129),        make_argmax_case(12, 3000),
          make_argmax_case(1, 49152, true), make_argmax_case(1, 151936, true),
          make_argmax_case(8, 151936, true)};
}

}  // namespace pagoda

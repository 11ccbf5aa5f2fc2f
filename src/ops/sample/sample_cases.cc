#include "ops/sample/sample.h"

#include <random>

#include "ops/op_cases.h"
#include "ops/sample/row_cases.h"

namespace pagoda {
namespace {

Tensor upload_uniforms(Exec& exec, std::span<const int> rows) {
  std::vector<std::int32_t> halves;
  for (const int row : rows) {
    std::mt19937 random(static_cast<std::uint32_t>(7 * row + 1));
    for (int half = 0; half < 2; ++half) halves.push_back(static_cast<std::int32_t>(random() >> 1));
    // Some rows get the ends of the range.
    if (row % 11 == 9) halves[halves.size() - 2] = halves.back() = 0;
    if (row % 11 == 10) halves[halves.size() - 2] = halves.back() = 0x7fffffff;
  }
  return exec.upload<std::int32_t>(halves, {static_cast<std::int64_t>(rows.size()), 2});
}

OpCase make_sample_case(int rows, int vocab_size, bool is_filtered, bool is_large = false) {
  OpCase result{
      .op = "sample",
      .description = fmt::format("{} x {}{}", rows, vocab_size, is_filtered ? ", filtered" : ""),
      .num_tokens = rows,
      .tolerance = {.cpu = 0, .mlx = 0, .cuda = 0},
      .bytes = 4.0 * rows * vocab_size,
      .is_large = is_large};
  result.prepare = [=](Exec& exec, std::span<const int> wanted) -> Result<CaseRun> {
    return CaseRun([&exec, is_filtered, logits = upload_case_logits(exec, wanted, vocab_size),
                    inverse = upload_case_temperatures(exec, wanted, /*with_greedy=*/true),
                    uniforms = upload_uniforms(exec, wanted),
                    filters = upload_case_filters(exec, wanted, vocab_size)] {
      return std::vector<Tensor>{sample(exec, logits,
                                        {.inverse_temperature = inverse,
                                         .uniforms = uniforms,
                                         .filters = is_filtered ? &filters : nullptr})};
    });
  };
  return result;
}

}  // namespace

std::vector<OpCase> sample_cases() {
  return {make_sample_case(1, 1, false),
          make_sample_case(40, 7, false),
          make_sample_case(40, 129, false),
          make_sample_case(24, 3000, false),
          make_sample_case(40, 7, true),
          make_sample_case(64, 129, true),
          make_sample_case(64, 3000, true),
          make_sample_case(1, 151936, false, true),
          make_sample_case(8, 151936, false, true),
          make_sample_case(8, 151936, true, true)};
}

}  // namespace pagoda

#include <limits>

#include "ops/apply_logit_bias/entry_cases.h"
#include "ops/op_cases.h"

namespace pagoda {
namespace {

OpCase make_apply_logit_bias_case(int rows, int vocab_size, DType dtype) {
  OpCase result{.op = "apply_logit_bias",
                .description = fmt::format("{} x {} {}", rows, vocab_size, dtype_name(dtype)),
                .num_tokens = rows,
                .tolerance = {.cpu = 0, .mlx = 0, .cuda = 0}};
  result.prepare = [=](Exec& exec, std::span<const int> wanted) -> Result<CaseRun> {
    const CaseEntries entries(wanted, vocab_size);
    std::vector<float> biases;
    for (const std::uint32_t number : entries.numbers) {
      biases.push_back(number % 5 == 0 ? -std::numeric_limits<float>::infinity()
                                       : static_cast<float>(number % 2000) / 10.0f - 100.0f);
    }
    const auto n = static_cast<std::int64_t>(wanted.size());
    return CaseRun(
        [&exec,
         logits = upload_as(exec, dtype, case_number_rows(wanted, vocab_size), {n, vocab_size}),
         at = entries.upload(exec), added = exec.upload<float>(biases, {entries.size()})] {
          return std::vector<Tensor>{apply_logit_bias(exec, logits, at, added)};
        });
  };
  result.bytes = static_cast<double>(2 * dtype_size(dtype)) * rows * vocab_size;
  return result;
}

}  // namespace

std::vector<OpCase> apply_logit_bias_cases() {
  return {make_apply_logit_bias_case(1, 1, DType::kFloat32),
          make_apply_logit_bias_case(20, 130, DType::kFloat32),
          make_apply_logit_bias_case(9, 1000, DType::kBFloat16),
          make_apply_logit_bias_case(9, 1000, DType::kFloat16)};
}

}  // namespace pagoda

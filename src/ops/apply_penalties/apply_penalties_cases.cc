#include <array>

#include "ops/apply_logit_bias/entry_cases.h"
#include "ops/apply_penalties/apply_penalties.h"
#include "ops/op_cases.h"

namespace pagoda {
namespace {

constexpr std::array<float, 4> kRepetition = {1.0f, 1.1f, 0.5f, 2.0f};
constexpr std::array<float, 3> kFrequency = {0.0f, 0.3f, -0.5f};
constexpr std::array<float, 5> kPresence = {0.0f, 0.7f, -2.0f, 0.0f, 1.5f};

template <std::size_t kSize>
Tensor upload_factors(Exec& exec, std::span<const int> rows,
                      const std::array<float, kSize>& values) {
  std::vector<float> factors;
  for (const int row : rows) factors.push_back(values[row % kSize]);
  return exec.upload<float>(factors, {static_cast<std::int64_t>(rows.size())});
}

OpCase make_case(int rows, int vocab_size, DType dtype) {
  OpCase result{.op = "apply_penalties",
                .description = fmt::format("{} x {} {}", rows, vocab_size, dtype_name(dtype)),
                .num_tokens = rows,
                .tolerance = {.cpu = 0, .mlx = 0, .cuda = 0}};
  result.prepare = [=](Exec& exec, std::span<const int> wanted) -> Result<CaseRun> {
    const CaseEntries entries(wanted, vocab_size);
    std::vector<std::int32_t> counts;
    for (const std::uint32_t number : entries.numbers)
      counts.push_back(static_cast<std::int32_t>(number % 4 * (number % 7)));
    const auto n = static_cast<std::int64_t>(wanted.size());
    return CaseRun(
        [&exec,
         logits = upload_as(exec, dtype, case_number_rows(wanted, vocab_size), {n, vocab_size}),
         at = entries.upload(exec),
         output_counts = exec.upload<std::int32_t>(counts, {entries.size()}),
         factors = PenaltyFactors{.repetition = upload_factors(exec, wanted, kRepetition),
                                  .frequency = upload_factors(exec, wanted, kFrequency),
                                  .presence = upload_factors(exec, wanted, kPresence)}] {
          return std::vector<Tensor>{apply_penalties(exec, logits, at, output_counts, factors)};
        });
  };
  result.bytes = static_cast<double>(2 * dtype_size(dtype)) * rows * vocab_size;
  return result;
}

}  // namespace

std::vector<OpCase> apply_penalties_cases() {
  return {make_case(1, 1, DType::kFloat32), make_case(40, 130, DType::kFloat32),
          make_case(15, 1000, DType::kBFloat16), make_case(15, 1000, DType::kFloat16)};
}

}  // namespace pagoda

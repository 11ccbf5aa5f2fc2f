#include <array>

#include "ops/apply_logit_bias/entry_cases.h"
#include "ops/apply_penalties/apply_penalties.h"
#include "ops/count_tokens/count_tokens.h"
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

// Counts the rows' entries in histograms, whose order is the reverse of the rows'. Every sixth row
// has no histogram.
Result<SeenTokenCounts> upload_counts(Exec& exec, std::span<const int> rows, int vocab_size) {
  const CaseEntries entries(rows, vocab_size);
  const auto n = static_cast<std::int32_t>(rows.size());
  std::vector<std::int32_t> histograms, times, histogram_of;
  for (const std::int32_t row : entries.rows) histograms.push_back(n - 1 - row);
  for (const std::uint32_t number : entries.numbers)
    times.push_back(static_cast<std::int32_t>(number % 4 * (number % 7)));
  for (std::int32_t row = 0; row < n; ++row)
    histogram_of.push_back(rows[row] % 6 == 5 ? -1 : n - 1 - row);
  PAGODA_ASSIGN_OR_RETURN(const Tensor none,
                          exec.allocate_persistent(DType::kInt32, {n, vocab_size}));
  const Shape shape = {entries.size()};
  const Tensor counts =
      count_tokens(exec, none, {},
                   {.histograms = exec.upload<std::int32_t>(histograms, shape),
                    .token_ids = exec.upload<std::int32_t>(entries.token_ids, shape),
                    .times = exec.upload<std::int32_t>(times, shape)});
  return SeenTokenCounts{.counts = counts,
                         .histogram_of = exec.upload<std::int32_t>(histogram_of, {n})};
}

OpCase make_apply_penalties_case(int rows, int vocab_size, DType dtype, bool is_large = false) {
  OpCase result{.op = "apply_penalties",
                .description = fmt::format("{} x {} {}", rows, vocab_size, dtype_name(dtype)),
                .num_tokens = rows,
                .tolerance = {.cpu = 0, .mlx = 0, .cuda = 0}};
  result.prepare = [=](Exec& exec, std::span<const int> wanted) -> Result<CaseRun> {
    PAGODA_ASSIGN_OR_RETURN(const SeenTokenCounts seen, upload_counts(exec, wanted, vocab_size));
    const auto n = static_cast<std::int64_t>(wanted.size());
    return CaseRun(
        [&exec, seen,
         logits = upload_as(exec, dtype, case_number_rows(wanted, vocab_size), {n, vocab_size}),
         factors = PenaltyFactors{.repetition = upload_factors(exec, wanted, kRepetition),
                                  .frequency = upload_factors(exec, wanted, kFrequency),
                                  .presence = upload_factors(exec, wanted, kPresence)}] {
          return std::vector<Tensor>{apply_penalties(exec, logits, seen, factors)};
        });
  };
  result.is_large = is_large;
  result.bytes = static_cast<double>(2 * dtype_size(dtype) + 4) * rows * vocab_size;
  return result;
}

}  // namespace

std::vector<OpCase> apply_penalties_cases() {
  return {make_apply_penalties_case(1, 1, DType::kFloat32),
          make_apply_penalties_case(40, 130, DType::kFloat32),
          make_apply_penalties_case(15, 1000, DType::kBFloat16),
          make_apply_penalties_case(15, 1000, DType::kFloat16),
          make_apply_penalties_case(8, 49152, DType::kFloat32, true)};
}

}  // namespace pagoda

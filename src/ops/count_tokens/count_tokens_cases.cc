#include "ops/count_tokens/count_tokens.h"
#include "ops/op_cases.h"

namespace pagoda {
namespace {

// Counts tokens in all histograms. Then clears every third histogram, marks the tokens as seen,
// counts them again, and takes back what was counted once.
OpCase make_count_tokens_case(int tokens, int histograms, int vocab_size) {
  OpCase result{.op = "count_tokens",
                .description = fmt::format("{} of {} x {}", tokens, histograms, vocab_size),
                .num_tokens = tokens,
                .rows_are_tokens = false,
                .tolerance = {.cpu = 0, .mlx = 0, .cuda = 0}};
  result.prepare = [=](Exec& exec, std::span<const int> wanted) -> Result<CaseRun> {
    std::vector<std::int32_t> of_histogram, token_ids, times, none, taken, cleared;
    for (const int i : wanted) {
      of_histogram.push_back(i % 7 == 6 ? -1 : i % histograms);
      token_ids.push_back(i % 5 == 4 ? -1 - i % 2 : i / histograms);
      times.push_back(i % 3);
      none.push_back(0);
      taken.push_back(-(i % 3));
    }
    for (int histogram = 0; histogram < histograms; histogram += 3) cleared.push_back(histogram);
    const auto put = [&](const std::vector<std::int32_t>& values) {
      return exec.upload<std::int32_t>(values, {static_cast<std::int64_t>(values.size())});
    };
    PAGODA_ASSIGN_OR_RETURN(const Tensor counts,
                            exec.allocate_persistent(DType::kInt32, {histograms, vocab_size}));
    const CountedTokens counted = {
        .histograms = put(of_histogram), .token_ids = put(token_ids), .times = put(times)};
    const CountedTokens seen = {
        .histograms = counted.histograms, .token_ids = counted.token_ids, .times = put(none)};
    const CountedTokens taken_back = {
        .histograms = counted.histograms, .token_ids = counted.token_ids, .times = put(taken)};
    std::vector<std::int32_t> all;
    for (int histogram = 0; histogram < histograms; ++histogram) all.push_back(histogram);
    return CaseRun([&exec, counted, seen, taken_back, all = put(all), cleared = put(cleared),
                    now = counts]() mutable {
      now = count_tokens(exec, now, all, counted);
      now = count_tokens(exec, now, cleared, seen);
      now = count_tokens(exec, now, {}, counted);
      now = count_tokens(exec, now, {}, taken_back);
      return std::vector<Tensor>{now};
    });
  };
  result.bytes = 4.0 * histograms * vocab_size;
  return result;
}

}  // namespace

std::vector<OpCase> count_tokens_cases() {
  return {make_count_tokens_case(1, 1, 1), make_count_tokens_case(30, 4, 10),
          make_count_tokens_case(200, 3, 130)};
}

}  // namespace pagoda

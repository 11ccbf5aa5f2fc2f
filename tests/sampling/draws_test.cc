// A million draws of each method follow numpy's probabilities (make_fixture.py): Pearson's
// chi-square at fixed seeds.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/sampling/filter_case.h"

namespace pagoda {
namespace {

constexpr int kNumDraws = 1000000;

std::vector<int> draw_counts(const FilterCase& c) {
  Sampler sampler(c.vocab_size());
  SamplerState state(c.params, static_cast<int>(c.tokens.size()) + 1);
  std::vector<int> counts(c.vocab_size(), 0);
  for (int position = 0; position < kNumDraws; ++position) {
    state.sync(c.tokens, c.num_prompt_tokens);
    RowSampling row = c.at(position);
    row.state = &state;
    ++counts[*sampler.sample(row)];
  }
  return counts;
}

// Expects a statistic below its 1 - 1e-6 quantile, by Wilson and Hilferty's approximation ("The
// distribution of chi-square", 1931).
void expect_distribution(std::vector<int> counts, const FilterCase& c) {
  double statistic = 0;
  for (std::size_t i = 0; i < c.kept.size(); ++i) {
    const double expected = kNumDraws * c.probabilities[i];
    int& count = counts[c.kept[i]];
    EXPECT_GT(count, 0) << "token " << c.kept[i] << " is kept";
    statistic += (count - expected) * (count - expected) / expected;
    count = 0;
  }
  for (int id = 0; id < c.vocab_size(); ++id)
    EXPECT_EQ(counts[id], 0) << "token " << id << " is not kept";
  constexpr double kNormalQuantile = 4.753;
  const auto degrees = static_cast<double>(c.kept.size()) - 1;
  const double spread = 2.0 / (9.0 * degrees);
  EXPECT_LT(statistic, degrees * std::pow(1 - spread + kNormalQuantile * std::sqrt(spread), 3))
      << degrees << " degrees of freedom";
}

TEST(Draws, FollowTheirDistributions) {
  int num_cases = 0;
  for (const FilterCase& c : filter_cases()) {
    if (!c.is_counted) continue;
    SCOPED_TRACE(c.text);
    ++num_cases;
    expect_distribution(draw_counts(c), c);
  }
  EXPECT_EQ(num_cases, 14);
}

}  // namespace
}  // namespace pagoda

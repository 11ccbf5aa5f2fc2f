// Log-probabilities of the rows that ask for them: on every backend they are near the definition,
// and each row's bits are the same whatever the other rows ask for.
#include "sampling/device/row_log_probs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "tests/support/every_exec.h"

namespace pagoda {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

double tolerance_of(const Exec& exec) {
  return exec.backend() == Backend::kMlx ? 1e-5 : 1e-6;
}

struct Asked {
  int row;
  std::int32_t token_id;
  int num_top;
};

std::vector<Result<TokenLogprobs>> ask(Exec& exec, const std::vector<std::vector<float>>& logits,
                                       std::span<const Asked> asked) {
  RowLogProbs rows;
  std::vector<std::int32_t> ids;
  for (const Asked& each : asked) {
    rows.add(each.row, each.num_top);
    ids.push_back(each.token_id);
  }
  std::vector<float> values;
  for (const std::vector<float>& row : logits) values.insert(values.end(), row.begin(), row.end());
  const auto num_rows = static_cast<std::int64_t>(logits.size());
  const LogProbs given =
      rows.compute(exec, exec.upload<float>(values, {num_rows, std::ssize(logits[0])}),
                   exec.upload<std::int32_t>(ids, {rows.num_rows()}));
  const HostLogProbs read = HostLogProbs::read(exec, given).value();
  std::vector<Result<TokenLogprobs>> answers;
  for (int i = 0; i < rows.num_rows(); ++i)
    answers.push_back(read.of(i, asked[i].token_id, asked[i].num_top));
  return answers;
}

std::vector<float> normal_row(int n, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> row(n);
  for (float& x : row) x = normal(generator);
  if (n > 5) row[3] = row[n - 2] = row[n / 2];
  return row;
}

class LikeALongDouble : public testing::TestWithParam<int> {};

// A negative parameter makes a row with few distinct values, in which some tokens are banned.
TEST_P(LikeALongDouble, AreLogProbabilitiesAndRanks) {
  const int n = std::abs(GetParam());
  std::vector<float> row = normal_row(n, n);
  if (GetParam() < 0) {
    for (float& x : row) x = x < -6 ? -kInfinity : 4 * std::round(x / 4);
  }
  long double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<long double>(x));
  const auto log_sum = static_cast<double>(std::log(sum));
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return row[a] > row[b]; });
  for (const auto& exec : every_exec()) {
    SCOPED_TRACE(testing::Message() << backend_name(exec->backend()) << ", " << n << " tokens");
    for (const int id : {0, n / 2, n - 1, order[0]}) {
      const auto answer = ask(*exec, {row}, std::vector<Asked>{{0, id, 20}})[0];
      ASSERT_TRUE(answer.ok());
      EXPECT_EQ(answer->chosen.token_id, id);
      if (row[id] == -kInfinity) {
        EXPECT_EQ(answer->chosen.logprob, -kInfinity);
      } else {
        EXPECT_NEAR(answer->chosen.logprob, row[id] - log_sum, tolerance_of(*exec));
      }
      EXPECT_EQ(answer->rank,
                1 + std::count_if(row.begin(), row.end(), [&](float x) { return x > row[id]; }));
      ASSERT_EQ(answer->top.size(), static_cast<std::size_t>(std::min(n, 20)));
      for (std::size_t i = 0; i < answer->top.size(); ++i) {
        EXPECT_EQ(answer->top[i].token_id, order[i]);
        EXPECT_NEAR(answer->top[i].logprob, row[order[i]] - log_sum, tolerance_of(*exec));
      }
    }
  }
}

void expect_same(const TokenLogprobs& together, const TokenLogprobs& alone) {
  const auto expect_same_entry = [](const TokenLogprob& a, const TokenLogprob& b) {
    EXPECT_EQ(a.token_id, b.token_id);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(a.logprob), std::bit_cast<std::uint32_t>(b.logprob));
  };
  expect_same_entry(together.chosen, alone.chosen);
  EXPECT_EQ(together.rank, alone.rank);
  ASSERT_EQ(together.top.size(), alone.top.size());
  for (std::size_t i = 0; i < alone.top.size(); ++i)
    expect_same_entry(together.top[i], alone.top[i]);
}

INSTANTIATE_TEST_SUITE_P(Sizes, LikeALongDouble,
                         testing::Values(1, 5, 127, 1000, -1000, 3001, -3001, 49152, -49152));

// Rows that no request asks for lie between the others; one row is asked for twice, and one holds
// NaN.
TEST(RowLogProbs, ARowIsWhatItIsAlone) {
  constexpr int kVocabSize = 3001;
  std::vector<std::vector<float>> logits;
  for (unsigned row = 0; row < 12; ++row) logits.push_back(normal_row(kVocabSize, 70 + row));
  logits[4][77] = std::nanf("");
  const std::vector<Asked> asked = {{1, 5, 0},  {2, 3000, 20}, {4, 6, 3},  {4, -1, 0}, {7, 9, 1},
                                    {7, 10, 4}, {9, 1500, 0},  {11, 0, 2}, {3, -1, 2}};
  for (const auto& exec : every_exec()) {
    const auto together = ask(*exec, logits, asked);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      SCOPED_TRACE(testing::Message() << backend_name(exec->backend()) << ", answer " << i);
      const bool has_answer = asked[i].row != 4 && asked[i].token_id >= 0;
      ASSERT_EQ(together[i].ok(), has_answer);
      if (!has_answer) continue;
      EXPECT_EQ(together[i]->top.size(), static_cast<std::size_t>(asked[i].num_top));
      Asked alone = asked[i];
      alone.row = 0;
      expect_same(*together[i], *ask(*exec, {logits[asked[i].row]}, std::span(&alone, 1))[0]);
    }
  }
}

// Tensors made after the read must not reuse the memory of its results: MLX frees temporaries at
// once.
TEST(HostLogProbs, HoldsTheTensorsThatItReads) {
  constexpr int kNumRows = 64;
  constexpr int kVocabSize = 64;
  const std::vector<float> logits = normal_row(kNumRows * kVocabSize, 5);
  const std::vector<std::int32_t> ids(kNumRows, 1);
  const std::vector<float> others(kNumRows, 123);
  RowLogProbs rows;
  for (int row = 0; row < kNumRows; ++row) rows.add(row, 0);
  for (const auto& exec : every_exec()) {
    SCOPED_TRACE(backend_name(exec->backend()));
    const LogProbs kept = rows.compute(*exec, exec->upload<float>(logits, {kNumRows, kVocabSize}),
                                       exec->upload<std::int32_t>(ids, {kNumRows}));
    const HostLogProbs expected = HostLogProbs::read(*exec, kept).value();
    const HostLogProbs read =
        HostLogProbs::read(*exec,
                           rows.compute(*exec, exec->upload<float>(logits, {kNumRows, kVocabSize}),
                                        exec->upload<std::int32_t>(ids, {kNumRows})))
            .value();
    ASSERT_TRUE(exec->finish().ok());
    std::vector<Tensor> taken;
    for (int i = 0; i < 100; ++i) taken.push_back(exec->upload<float>(others, {kNumRows}));
    for (int row = 0; row < kNumRows; ++row)
      expect_same(*read.of(row, 1, 0), *expected.of(row, 1, 0));
  }
}

TEST(RowLogProbs, OfAForbiddenTokenIsMinusInfinity) {
  for (const auto& exec : every_exec()) {
    const auto answer = ask(*exec, {{1, -kInfinity, 2}}, std::vector<Asked>{{0, 1, 3}})[0];
    EXPECT_EQ(answer->chosen.logprob, -kInfinity);
    EXPECT_EQ(answer->rank, 3);
    EXPECT_EQ(answer->top.size(), 2u);
  }
}

}  // namespace
}  // namespace pagoda

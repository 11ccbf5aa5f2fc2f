// Ops draw from a batch. On every backend they give the tokens that the Sampler draws from each row
// alone.
#include "sampling/device/row_draws.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "backend/backend.h"
#include "ops/argmax/argmax.h"
#include "sampling/host/sampler.h"
#include "tensor/op_profile.h"
#include "tests/support/every_exec.h"

namespace pagoda {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kNumRows = 64;

struct Row {
  std::vector<float> logits;
  SamplingParams params;
  std::uint64_t seed = 0;
  int position = 0;
};

// Makes a greedy or random row with each filter on or off; flat, peaked or with ties. Rows of some
// indices have one token left, none, or values that are not numbers.
Row random_row(std::mt19937& random, int vocab_size, int index) {
  const auto pick = [&random](auto... values) {
    const auto list = {values...};
    return *(list.begin() + random() % list.size());
  };
  std::normal_distribution<float> normal(0, pick(0.2f, 1.0f, 4.0f));
  const bool has_ties = random() % 3 == 0;
  Row row{.params = {.temperature = pick(0.0f, 0.3f, 1.0f, 1.0f, 1.8f),
                     .top_k = pick(0, 0, 1, 5, 50, 2000, 1000000),
                     .top_p = pick(1.0f, 1.0f, 0.1f, 0.9f, 0.999f),
                     .min_p = pick(0.0f, 0.0f, 0.02f, 0.5f)},
          .seed = random(),
          .position = static_cast<int>(random() % 10000)};
  for (int i = 0; i < vocab_size; ++i) {
    const float x = normal(random);
    row.logits.push_back(has_ties ? std::round(x * 4) / 4 : x);
  }
  if (index == 13) row.logits[random() % vocab_size] = std::nanf("");
  if (index == 29) row.logits[random() % vocab_size] = kInfinity;
  if (index == 40) row.logits.assign(vocab_size, -kInfinity);
  if (index == 41 || index == 42) {
    row.logits.assign(vocab_size, -kInfinity);
    row.logits[random() % vocab_size] = -7;
  }
  return row;
}

std::vector<std::int32_t> draw(Exec& exec, std::span<const Row> rows) {
  RowDraws draws;
  std::vector<float> logits;
  for (const Row& row : rows) {
    draws.add(row.params, {.seed = row.seed, .sample_index = 1, .position = row.position});
    logits.insert(logits.end(), row.logits.begin(), row.logits.end());
  }
  const auto n = static_cast<std::int64_t>(rows.size());
  const Tensor drawn = draws.draw(
      exec, exec.upload<float>(logits, {n, static_cast<std::int64_t>(logits.size()) / n}));
  return compute_values<std::int32_t>(exec, drawn);
}

TEST(RowDraws, LeavesToTheHostWhatNoOpKnows) {
  for (const SamplingParams& params :
       {SamplingParams{.dynatemp_range = 0.5f}, SamplingParams{.typical_p = 0.5f},
        SamplingParams{.xtc_probability = 0.5f}, SamplingParams{.mirostat = 2}}) {
    EXPECT_FALSE(RowDraws::cover(params));
  }
  EXPECT_TRUE(RowDraws::cover({}));
  EXPECT_TRUE(RowDraws::cover({.temperature = 0.5f, .top_k = 3, .top_p = 0.5f, .min_p = 0.1f}));
  EXPECT_TRUE(RowDraws::cover({.repetition_penalty = 2, .min_tokens = 3, .ignore_eos = true}));
}

TEST(RowDraws, AMixedBatchIsWhatEachRowIsAlone) {
  constexpr unsigned kSeed = 20261121;
  std::printf("seed %u\n", kSeed);
  for (const int vocab_size : {5, 130, 3001}) {
    std::mt19937 random(kSeed);
    std::vector<Row> rows;
    for (int i = 0; i < kNumRows; ++i) rows.push_back(random_row(random, vocab_size, i));
    for (const auto& exec : every_exec()) {
      const std::vector<std::int32_t> together = draw(*exec, rows);
      Sampler sampler(vocab_size);
      for (int i = 0; i < kNumRows; ++i) {
        SCOPED_TRACE(testing::Message() << backend_name(exec->backend()) << ", " << vocab_size
                                        << " tokens, row " << i);
        EXPECT_EQ(draw(*exec, std::span(rows).subspan(i, 1))[0], together[i]);
        const Result<int> token = sampler.sample({.logits = rows[i].logits,
                                                  .params = &rows[i].params,
                                                  .seed = rows[i].seed,
                                                  .sample_index = 1,
                                                  .position = rows[i].position});
        const Status status = status_of_drawn(together[i], vocab_size);
        EXPECT_EQ(status.message(), token.status().message());
        if (token.ok()) {
          EXPECT_EQ(together[i], *token);
        }
      }
    }
  }
}

TEST(RowDraws, ARowWithoutTopKKeepsItsVocabularyBesideOneWithIt) {
  constexpr int kVocabSize = 64;
  std::vector<Row> rows;
  for (int i = 0; i < 2 * kNumRows; ++i) {
    rows.push_back({.logits = std::vector<float>(kVocabSize, 0.5f),
                    .params = {.top_k = i % 2 == 0 ? 0 : 1},
                    .seed = 5,
                    .position = i});
    if (i % 2 == 1) rows.back().logits[9] = 0.75f;
  }
  for (const auto& exec : every_exec()) {
    const std::vector<std::int32_t> ids = draw(*exec, rows);
    std::set<std::int32_t> of_all;
    for (int i = 0; i < 2 * kNumRows; ++i) {
      if (i % 2 == 1) {
        EXPECT_EQ(ids[i], 9);
      } else {
        of_all.insert(ids[i]);
      }
    }
    EXPECT_GT(of_all.size(), 30u) << backend_name(exec->backend());  // 64 draws from 64 tokens
  }
}

// Reads the op profile, which native backends alone have.
TEST(RowDraws, GreedyRowsAreAnArgmaxAndNothingMore) {
  const auto exec = make_exec({.backend = Backend::kCpu, .num_threads = 1}).value();
  std::mt19937 random(3);
  std::vector<Row> rows;
  for (int i = 0; i < 8; ++i) {
    rows.push_back(random_row(random, 200, i));
    rows.back().params.temperature = 0;
  }
  const auto ops_of = [&] {
    const auto profile = std::make_shared<OpProfile>();
    exec->set_profile(profile);
    draw(*exec, rows);
    exec->set_profile(nullptr);
    std::set<std::string> ops;
    for (const OpTotals& totals : profile->ops()) ops.insert(std::string(totals.call.op));
    return ops;
  };
  EXPECT_EQ(ops_of(), std::set<std::string>{"argmax"});
  rows[3].params = {.temperature = 1};
  EXPECT_EQ(ops_of(), std::set<std::string>{"sample"});
}

}  // namespace
}  // namespace pagoda

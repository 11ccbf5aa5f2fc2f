// Extreme rows: one token, ties over a large vocabulary, values that are not numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "sampling/host/sampler.h"

namespace pagoda {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr int kLargeVocabulary = 262144;

struct Method {
  std::string name;
  SamplingParams params;
};

std::vector<Method> methods() {
  return {
      {"greedy", {.temperature = 0}},
      {"random", {}},
      {"filters", {.top_k = 50, .top_p = 0.9f, .min_p = 0.01f}},
      {"typical", {.typical_p = 0.5f}},
      {"typical and top-p", {.top_p = 0.5f, .typical_p = 0.5f}},
      {"xtc", {.xtc_probability = 1, .xtc_threshold = 1e-6f}},
      {"mirostat", {.mirostat = 2}},
      {"dynamic temperature", {.dynatemp_range = 0.5f}},
      {"down to no temperature", {.temperature = 0.5f, .dynatemp_range = 5}},
      {"dry", {.dry_multiplier = 1, .dry_allowed_length = 1}},
  };
}

class SamplerExtremes : public ::testing::TestWithParam<Method> {
 protected:
  Result<int> sample(Sampler& sampler, const std::vector<float>& logits, int position = 1) {
    const SamplingParams& params = GetParam().params;
    SamplerState state(params, 2);
    state.sync(tokens_, 1);
    return sampler.sample({.logits = logits,
                           .params = &params,
                           .state = &state,
                           .tokens = tokens_,
                           .num_prompt_tokens = 1,
                           .position = position});
  }

  std::vector<int> tokens_ = {0};
};

TEST_P(SamplerExtremes, OneTokenIsTaken) {
  for (const int vocab_size : {1, 2, 129, 3000}) {
    Sampler sampler(vocab_size);
    for (const int only : {0, vocab_size / 2, vocab_size - 1}) {
      std::vector<float> row(vocab_size, kMinusInfinity);
      row[only] = -3e38f;
      EXPECT_EQ(sample(sampler, row).value(), only);
    }
  }
}

TEST_P(SamplerExtremes, TiesOverALargeVocabulary) {
  Sampler sampler(kLargeVocabulary);
  const std::vector<float> row(kLargeVocabulary, 1.25f);
  const Result<int> token = sample(sampler, row);
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(*token, sample(sampler, row).value());
  if (GetParam().name == "typical") {
    EXPECT_LT(*token, kLargeVocabulary / 2);  // of equals the lower ids are kept
  }
  if (GetParam().name == "typical and top-p") {
    EXPECT_LT(*token, kLargeVocabulary / 4);
  }
  if (GetParam().name == "xtc") {
    EXPECT_EQ(*token, kLargeVocabulary - 1);
  }
  if (GetParam().name == "mirostat") {
    EXPECT_EQ(*token, 0);  // each token's surprise, 18 bits, is above mu
  }
}

TEST_P(SamplerExtremes, LogitsAsFarApartAsTheyGo) {
  Sampler sampler(300);
  std::vector<float> row(300, -3.4e38f);
  row[200] = 3.4e38f;
  EXPECT_EQ(sample(sampler, row).value(), 200);
}

TEST_P(SamplerExtremes, WhatIsNoDistributionFailsAlone) {
  Sampler sampler(300);
  const std::vector<float> good(300, 0.0f);
  for (const float bad : {std::nanf(""), -kMinusInfinity}) {
    std::vector<float> row = good;
    row[299] = bad;
    EXPECT_EQ(sample(sampler, row).status().code(), StatusCode::kInvalidArgument);
    EXPECT_TRUE(sample(sampler, good).ok());
  }
  const std::vector<float> nothing(300, kMinusInfinity);
  EXPECT_EQ(sample(sampler, nothing).status().code(), StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Methods, SamplerExtremes, ::testing::ValuesIn(methods()));

}  // namespace
}  // namespace pagoda

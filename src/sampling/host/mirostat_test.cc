#include "sampling/host/mirostat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "draw/rng.h"
#include "sampling/host/sampler.h"

namespace pagoda {
namespace {

const SamplingParams kParams = {.mirostat = 2, .mirostat_tau = 3, .mirostat_eta = 0.5f};

TEST(Mirostat, MovesMuByWhatWasDrawn) {
  MirostatState state(kParams, 4);
  EXPECT_EQ(state.mu(), 6.0f);
  state.record(kParams, 5);
  EXPECT_EQ(state.mu(), 5.0f);
  state.record(kParams, 0);
  EXPECT_EQ(state.mu(), 6.5f);
}

TEST(Mirostat, AHistoryCutShortFindsTheMuThatHeldThere) {
  MirostatState state(kParams, 8);
  std::vector<float> mus = {state.mu()};
  for (const double surprise : {5.0, 1.0, 2.5}) {
    state.record(kParams, surprise);
    mus.push_back(state.mu());
  }
  for (const int num_output_tokens : {3, 2, 1, 0}) {
    state.sync(num_output_tokens);
    EXPECT_EQ(state.mu(), mus[num_output_tokens]);
  }
  state.record(kParams, 5);
  state.sync(4);  // three tokens that were not drawn
  EXPECT_EQ(state.mu(), 5.0f);
}

// Draws by the paper's second algorithm, over probabilities in double.
struct Definition {
  double mu;

  int draw(const std::vector<float>& logits, double uniform, bool& clear) {
    double total = 0;
    for (const float logit : logits) total += std::exp(double{logit});
    std::vector<int> kept;
    double kept_total = 0;
    for (int id = 0; id < static_cast<int>(logits.size()); ++id) {
      const double surprise = -std::log2(std::exp(double{logits[id]}) / total);
      if (std::abs(surprise - mu) < 1e-5) clear = false;
      if (surprise > mu) continue;
      kept.push_back(id);
      kept_total += std::exp(double{logits[id]});
    }
    int token = static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    double probability = 1;
    double reached = 0;
    for (const int id : kept) {
      token = id;
      probability = std::exp(double{logits[id]}) / kept_total;
      reached += probability;
      if (std::abs(reached - uniform) < 1e-5) clear = false;
      if (reached > uniform) break;
    }
    mu -= kParams.mirostat_eta * (-std::log2(probability) - kParams.mirostat_tau);
    return token;
  }
};

TEST(Mirostat, EveryTokenAndMuIsTheDefinitions) {
  constexpr unsigned kSeed = 20261120;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  int num_compared = 0;
  for (int run = 0; run < 60; ++run) {
    constexpr int kVocabSize = 700;
    std::normal_distribution<float> normal(0, 1.0f + static_cast<float>(run % 5));
    Sampler sampler(kVocabSize);
    SamplerState state(kParams, 101);
    Definition definition{2 * double{kParams.mirostat_tau}};
    std::vector<int> tokens = {0};
    bool clear = true;
    while (tokens.size() < 101) {
      std::vector<float> row(kVocabSize);
      for (float& logit : row) logit = normal(random);
      const int position = static_cast<int>(tokens.size());
      state.sync(tokens, 1);
      const Result<int> token = sampler.sample({.logits = row,
                                                .params = &kParams,
                                                .state = &state,
                                                .tokens = tokens,
                                                .num_prompt_tokens = 1,
                                                .seed = 5,
                                                .position = position});
      const int expected =
          definition.draw(row, random_uniform({.seed = 5, .position = position}), clear);
      if (!clear) break;  // too close to compare
      ASSERT_EQ(*token, expected) << "run " << run << ", token " << position;
      ASSERT_NEAR(state.mirostat()->mu(), definition.mu, 1e-3);
      tokens.push_back(expected);
      ++num_compared;
    }
  }
  EXPECT_GT(num_compared, 3000);
}

// Mirostat's purpose: the mean surprise of the drawn tokens approaches tau, whatever the
// distribution.
TEST(Mirostat, HoldsTheSurpriseAtTau) {
  for (const float deviation : {1.0f, 3.0f}) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal(0, deviation);
    std::vector<float> row(2000);
    for (float& logit : row) logit = normal(random);
    Sampler sampler(2000);
    constexpr int kNumTokens = 2000;
    SamplerState state(kParams, kNumTokens + 1);
    std::vector<int> tokens = {0};
    const auto mu_at = [&](int num_output_tokens) {
      state.sync(std::vector<int>(num_output_tokens + 1, 0), 1);
      return state.mirostat()->mu();
    };
    for (int i = 1; i <= kNumTokens; ++i) {
      state.sync(tokens, 1);
      tokens.push_back(
          sampler
              .sample(
                  {.logits = row, .params = &kParams, .state = &state, .seed = 9, .position = i})
              .value());
    }
    // The change of mu is eta times the sum of the errors.
    const double drift = mu_at(kNumTokens - 1) - mu_at(0);
    EXPECT_LT(std::abs(drift / kParams.mirostat_eta / kNumTokens), 0.05);
  }
}

TEST(Mirostat, ExtremeRows) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  Sampler sampler(1000);
  std::vector<float> row(1000, kMinusInfinity);
  row[777] = -5;
  SamplerState state(kParams, 10);
  state.sync(std::vector<int>{0}, 1);
  const auto draw = [&] {
    return sampler.sample({.logits = row, .params = &kParams, .state = &state}).value();
  };
  EXPECT_EQ(draw(), 777);
  EXPECT_EQ(state.mirostat()->mu(), 6 + 0.5f * 3);  // a surprise of 0
  // mu becomes so low that only the likeliest token is kept.
  for (int i = 0; i < 5; ++i) state.mirostat()->record(kParams, 100);
  EXPECT_LT(state.mirostat()->mu(), 0);
  std::fill(row.begin(), row.end(), 0.0f);
  row[3] = 0.5f;
  EXPECT_EQ(draw(), 3);
}

}  // namespace
}  // namespace pagoda

#include "sampling/host/mirostat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <random>
#include <set>
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

SamplingParams params_of(int version) {
  SamplingParams params = kParams;
  params.mirostat = version;
  return params;
}

// Draws by the paper's first or second algorithm, over probabilities in double.
struct Definition {
  int version;
  double mu;

  // Returns the least probability that is kept. Sets `clear` to false where rounding may decide.
  double least_kept(std::vector<double> probabilities, bool& clear) const {
    if (version == 2) {
      const double least = std::exp2(-mu);
      for (const double probability : probabilities) {
        if (std::abs(std::log2(probability / least)) < 1e-5) clear = false;
      }
      return least;
    }
    std::sort(probabilities.begin(), probabilities.end(), std::greater<>());
    double of_ranks = 0, squares = 0;
    for (int i = 0; i < 99; ++i) {
      const double t = std::log((i + 2.0) / (i + 1.0));
      of_ranks += t * std::log(probabilities[i] / probabilities[i + 1]);
      squares += t * t;
    }
    const double s = of_ranks / squares;
    const double size = static_cast<double>(probabilities.size());
    const double k = std::pow((s - 1) * std::exp2(mu) / (1 - std::pow(size, 1 - s)), 1 / s);
    if (std::abs(k - std::round(k)) < 1e-5 * k) clear = false;
    const double place = std::clamp(std::floor(k), 1.0, size) - 1;
    return probabilities[static_cast<std::size_t>(place)];
  }

  int draw(const std::vector<float>& logits, double uniform, bool& clear) {
    double total = 0;
    for (const float logit : logits) total += std::exp(double{logit});
    std::vector<double> probabilities;
    for (const float logit : logits) probabilities.push_back(std::exp(double{logit}) / total);
    const double least = least_kept(probabilities, clear);
    std::vector<int> kept;
    double kept_total = 0;
    for (int id = 0; id < static_cast<int>(logits.size()); ++id) {
      if (probabilities[id] < least) continue;
      kept.push_back(id);
      kept_total += probabilities[id];
    }
    int token = static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    double probability = 1;
    double reached = 0;
    for (const int id : kept) {
      token = id;
      probability = probabilities[id] / kept_total;
      reached += probability;
      if (std::abs(reached - uniform) < 1e-5) clear = false;
      if (reached > uniform) break;
    }
    mu -= kParams.mirostat_eta * (-std::log2(probability) - kParams.mirostat_tau);
    return token;
  }
};

class MirostatVersion : public ::testing::TestWithParam<int> {};

TEST_P(MirostatVersion, EveryTokenAndMuIsTheDefinitions) {
  constexpr unsigned kSeed = 20261120;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  const SamplingParams params = params_of(GetParam());
  int num_compared = 0;
  for (int run = 0; run < 60; ++run) {
    constexpr int kVocabSize = 700;
    std::normal_distribution<float> normal(0, 1.0f + static_cast<float>(run % 5));
    Sampler sampler(kVocabSize);
    SamplerState state(params, 101);
    Definition definition{GetParam(), 2 * double{params.mirostat_tau}};
    std::vector<int> tokens = {0};
    bool clear = true;
    while (tokens.size() < 101) {
      std::vector<float> row(kVocabSize);
      for (float& logit : row) logit = normal(random);
      const int position = static_cast<int>(tokens.size());
      state.sync(tokens, 1);
      const Result<int> token = sampler.sample({.logits = row,
                                                .params = &params,
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
TEST_P(MirostatVersion, HoldsTheSurpriseAtTau) {
  const SamplingParams params = params_of(GetParam());
  for (const float deviation : {1.0f, 3.0f}) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal(0, deviation);
    std::vector<float> row(2000);
    for (float& logit : row) logit = normal(random);
    Sampler sampler(2000);
    constexpr int kNumTokens = 2000;
    SamplerState state(params, kNumTokens + 1);
    std::vector<int> tokens = {0};
    const auto mu_at = [&](int num_output_tokens) {
      state.sync(std::vector<int>(num_output_tokens + 1, 0), 1);
      return state.mirostat()->mu();
    };
    for (int i = 1; i <= kNumTokens; ++i) {
      state.sync(tokens, 1);
      tokens.push_back(
          sampler
              .sample({.logits = row, .params = &params, .state = &state, .seed = 9, .position = i})
              .value());
    }
    // The change of mu is eta times the sum of the errors.
    const double drift = mu_at(kNumTokens - 1) - mu_at(0);
    EXPECT_LT(std::abs(drift / params.mirostat_eta / kNumTokens), 0.05);
  }
}

INSTANTIATE_TEST_SUITE_P(Mirostat, MirostatVersion, ::testing::Values(1, 2));

TEST(Mirostat, TheFirstVersionsRankIsInRangeForEveryRow) {
  const std::vector<float> equal(100, 2.0f);
  EXPECT_EQ(mirostat_top_k(equal, 1, 5, 1000), 1);
  EXPECT_EQ(mirostat_top_k(equal, 1, 20, 1000), 1000);
  EXPECT_EQ(mirostat_top_k(std::vector<float>{3}, 1, 5, 1000), 1);
  EXPECT_EQ(mirostat_top_k({}, 1, 5, 1000), 1);
  const std::vector<float> far = {3e38f, 0, -3e38f};
  for (const float temperature : {1e-5f, 1.0f, 1000.0f}) {
    for (const float mu : {-1e30f, 0.0f, 1e30f}) {
      const int top_k = mirostat_top_k(far, temperature, mu, 1000);
      EXPECT_TRUE(1 <= top_k && top_k <= 1000) << top_k;
    }
  }
  // Zipf's law itself, of the exponent 1: the k of which 2^mu is k times the logarithm of the size.
  std::vector<float> zipf;
  for (int rank = 1; rank <= 100; ++rank) zipf.push_back(-std::log(static_cast<float>(rank)));
  EXPECT_NEAR(mirostat_top_k(zipf, 1, std::log2(50 * std::log(1000.0f)), 1000), 50, 1);
}

TEST(Mirostat, TheFirstVersionKeepsTiesAndDrawsFromOneToken) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  const SamplingParams params = params_of(1);
  Sampler sampler(1000);
  const auto draw = [&](const std::vector<float>& row, int position) {
    SamplerState state(params, 10);
    state.sync(std::vector<int>{0}, 1);
    return sampler.sample({.logits = row, .params = &params, .state = &state, .position = position})
        .value();
  };
  std::vector<float> row(1000, kMinusInfinity);
  row[777] = -5;
  for (int position = 0; position < 20; ++position) EXPECT_EQ(draw(row, position), 777);
  row.assign(1000, 1.0f);  // k is 1, and all tokens tie
  std::set<int> drawn;
  for (int position = 0; position < 100; ++position) drawn.insert(draw(row, position));
  EXPECT_GT(drawn.size(), 50u);
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

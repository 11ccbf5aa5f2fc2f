// The sampler against its definition: every stage over the whole vocabulary, sorted, in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "sampling/rng.h"
#include "sampling/sampler.h"

namespace pagoda {
namespace {

// A decision closer than this to its threshold is float32's to take.
constexpr double kMargin = 2e-5;

struct Case {
  std::vector<float> logits;
  SamplingParams params;
  std::vector<int> history;  // the first token is the prompt
  bool bans = false;
  std::vector<int> eos;
  int position = 0;
};

// The token, or nothing where a decision is closer than kMargin.
class Definition {
 public:
  explicit Definition(const Case& c) : c_(c), logits_(c.logits.begin(), c.logits.end()) {}

  std::optional<int> token() {
    change_logits();
    if (is_greedy(c_.params)) {
      return static_cast<int>(std::max_element(logits_.begin(), logits_.end()) - logits_.begin());
    }
    order_.resize(logits_.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [this](int a, int b) { return logits_[a] > logits_[b]; });
    std::erase_if(order_, [this](int id) { return std::isinf(logits_[id]); });
    filter_min_p();
    filter_top_k();
    filter_top_p();
    const int token = draw();
    return clear_ ? std::optional(token) : std::nullopt;
  }

 private:
  void change_logits() {
    if (c_.bans) {
      for (const int id : c_.eos) logits_[id] = -std::numeric_limits<double>::infinity();
      for (const int id : c_.params.stop_token_ids)
        logits_[id] = -std::numeric_limits<double>::infinity();
    }
    for (int id = 0; id < static_cast<int>(logits_.size()); ++id) {
      const auto count = std::count(c_.history.begin() + 1, c_.history.end(), id);
      if (count == 0 && c_.history[0] != id) continue;
      if (logits_[id] > 0) {
        logits_[id] /= c_.params.repetition_penalty;
      } else {
        logits_[id] *= c_.params.repetition_penalty;
      }
      logits_[id] -= c_.params.frequency_penalty * static_cast<double>(count);
      if (count > 0) logits_[id] -= c_.params.presence_penalty;
    }
  }

  double weight(int id) const {
    return std::exp((logits_[id] - logits_[order_[0]]) / c_.params.temperature);
  }

  void filter_min_p() {
    const double min_p = c_.params.min_p;
    for (const int id : order_) {
      if (min_p < 1 && std::abs(weight(id) - min_p) < kMargin * min_p) clear_ = false;
    }
    std::erase_if(order_, [this, min_p](int id) { return weight(id) < min_p; });
  }

  void filter_top_k() {
    const int top_k = c_.params.top_k;
    if (top_k <= 0 || top_k >= static_cast<int>(order_.size())) return;
    const double least = logits_[order_[top_k - 1]];
    std::erase_if(order_, [this, least](int id) { return logits_[id] < least; });
  }

  void filter_top_p() {
    if (c_.params.top_p >= 1) return;
    double total = 0;
    for (const int id : order_) total += weight(id);
    double reached = 0;
    std::size_t size = 0;
    while (size < order_.size() && reached < c_.params.top_p * total) {
      reached += weight(order_[size++]);
      if (std::abs(reached / total - c_.params.top_p) < kMargin) clear_ = false;
    }
    order_.resize(size);
  }

  int draw() {
    std::vector<double> weights;
    std::vector<int> ids = order_;
    std::sort(ids.begin(), ids.end());
    double total = 0;
    for (const int id : ids) total += weight(id);
    const double target = total * random_uniform({.seed = 99, .position = c_.position});
    double reached = 0;
    for (const int id : ids) {
      reached += weight(id);
      if (std::abs(reached - target) < kMargin * total) clear_ = false;
      if (reached > target) return id;
    }
    return ids.back();
  }

  const Case& c_;
  std::vector<double> logits_;
  std::vector<int> order_;  // kept ids, likeliest first
  bool clear_ = true;
};

// Logits and penalties are multiples of a power of two, so that float32 and double agree on every
// tie.
Case random_case(std::mt19937& generator) {
  const auto pick = [&generator](auto... values) {
    const auto list = {values...};
    return *(list.begin() + generator() % list.size());
  };
  Case c;
  const int vocab_size = pick(1, 3, 40, 128, 129, 700, 5000);
  const float scale = pick(0.25f, 1.0f, 4.0f);
  std::normal_distribution<float> normal(0, scale);
  for (int i = 0; i < vocab_size; ++i) {
    c.logits.push_back(std::round(normal(generator) * 16) / 16);
    if (i > 0 && generator() % 16 == 0) c.logits.back() = -std::numeric_limits<float>::infinity();
  }
  c.params.temperature = pick(0.0f, 0.25f, 1.0f, 1.0f, 1.7f, 100.0f);
  c.params.top_k = pick(0, 0, 1, 2, 7, 50, 300, 100000);
  c.params.top_p = pick(1.0f, 1.0f, 0.01f, 0.5f, 0.9f, 0.999f);
  c.params.min_p = pick(0.0f, 0.0f, 0.001f, 0.1f, 1.0f);
  c.params.repetition_penalty = pick(1.0f, 1.0f, 0.5f, 2.0f);
  c.params.presence_penalty = pick(0.0f, 0.5f, -1.0f);
  c.params.frequency_penalty = pick(0.0f, 0.25f, -0.5f);
  for (int i = 0; i < 10; ++i) c.history.push_back(static_cast<int>(generator() % vocab_size));
  c.bans = vocab_size > 3 && generator() % 3 == 0;
  c.eos = {vocab_size - 1};
  if (vocab_size > 3) c.params.stop_token_ids = {2};
  c.position = static_cast<int>(generator() % 10000);
  return c;
}

TEST(SamplerModel, EveryTokenIsTheDefinitions) {
  constexpr unsigned kSeed = 20260101;
  std::printf("seed %u\n", kSeed);
  std::mt19937 generator(kSeed);
  int num_compared = 0;
  constexpr int kNumCases = 4000;
  for (int i = 0; i < kNumCases; ++i) {
    const Case c = random_case(generator);
    const std::optional<int> expected = Definition(c).token();
    if (!expected) continue;
    ++num_compared;
    SamplerState state(c.params, static_cast<int>(c.history.size()));
    state.sync(c.history, 1);
    Sampler sampler(static_cast<int>(c.logits.size()));
    const Result<SampledToken> token = sampler.sample({.logits = c.logits,
                                                       .params = &c.params,
                                                       .bans_stop_tokens = c.bans,
                                                       .eos_token_ids = c.eos,
                                                       .state = &state,
                                                       .seed = 99,
                                                       .position = c.position});
    ASSERT_TRUE(token.ok()) << "case " << i << ": " << token.status().message();
    ASSERT_EQ(token->token_id, *expected) << "case " << i;
  }
  EXPECT_GT(num_compared, kNumCases * 9 / 10);
}

}  // namespace
}  // namespace pagoda

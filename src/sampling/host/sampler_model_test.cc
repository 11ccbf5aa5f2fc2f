// Compares the sampler with its definition: every stage sorts the whole vocabulary, in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "draw/rng.h"
#include "sampling/host/sampler.h"
#include "sampling/token_rules.h"

namespace pagoda {
namespace {

// Decisions that are closer than this to their threshold are not compared: float32 may differ.
constexpr double kMargin = 2e-5;

struct Case {
  std::vector<float> logits;
  SamplingParams params;
  std::vector<int> history;  // the first token is the prompt
  bool bans = false;
  std::vector<int> eos;
  int position = 0;
};

// Finds the token by definition, or nothing if a decision is closer than kMargin to its threshold.
class Definition {
 public:
  explicit Definition(const Case& c) : c_(c), logits_(c.logits.begin(), c.logits.end()) {}

  std::optional<int> token() {
    change_logits();
    if (is_greedy(c_.params)) {
      return static_cast<int>(std::max_element(logits_.begin(), logits_.end()) - logits_.begin());
    }
    choose_temperature();
    order_.resize(logits_.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [this](int a, int b) { return logits_[a] > logits_[b]; });
    std::erase_if(order_, [this](int id) { return std::isinf(logits_[id]); });
    filter_min_p();
    filter_top_k();
    filter_typical();
    filter_top_p();
    filter_xtc();
    const int token = draw();
    return clear_ ? std::optional(token) : std::nullopt;
  }

 private:
  void follow_rules() {
    constexpr double kBanned = -std::numeric_limits<double>::infinity();
    const TokenRules& rules = *c_.params.token_rules;
    for (const LogitBias& entry : rules.logit_bias) logits_[entry.token_id] += entry.bias;
    const std::vector<std::uint32_t>& allowed = rules.allowed_tokens;
    for (int id = 0; id < static_cast<int>(logits_.size()); ++id) {
      const bool is_allowed = allowed.empty() || (allowed[id / 32] >> id % 32 & 1) != 0;
      if (!is_allowed) logits_[id] = kBanned;
      for (const std::vector<int>& word : rules.bad_words) {
        std::vector<int> text(c_.history.begin() + 1, c_.history.end());
        text.push_back(id);
        if (text.size() >= word.size() && std::equal(word.rbegin(), word.rend(), text.rbegin()))
          logits_[id] = kBanned;
      }
    }
  }

  // Applies DRY over the whole history, without breakers.
  void penalise_repetitions() {
    const std::vector<int>& h = c_.history;
    const int size = static_cast<int>(h.size());
    std::vector<int> longest(logits_.size(), 0);
    for (int next = 1; next < size; ++next) {
      int length = 0;
      while (length < next && h[next - 1 - length] == h[size - 1 - length]) ++length;
      longest[h[next]] = std::max(longest[h[next]], length);
    }
    for (std::size_t id = 0; id < logits_.size(); ++id) {
      const int over = longest[id] - c_.params.dry_allowed_length;
      if (over >= 0)
        logits_[id] -= c_.params.dry_multiplier * std::pow(double{c_.params.dry_base}, over);
    }
  }

  void change_logits() {
    if (c_.params.token_rules) follow_rules();
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
    if (c_.params.dry_multiplier > 0) penalise_repetitions();
  }

  void choose_temperature() {
    temperature_ = c_.params.temperature;
    if (c_.params.dynatemp_range == 0) return;
    double total = 0;
    double sum = 0;
    int num_tokens = 0;
    const double max = *std::max_element(logits_.begin(), logits_.end());
    for (const double logit : logits_) {
      if (std::isinf(logit)) continue;
      ++num_tokens;
      total += std::exp(logit - max);
      sum += std::exp(logit - max) * (logit - max);
    }
    if (num_tokens <= 1) return;
    const double share =
        std::clamp((std::log(total) - sum / total) / std::log(num_tokens), 0.0, 1.0);
    const double least = std::max(0.0, temperature_ - c_.params.dynatemp_range);
    const double most = temperature_ + c_.params.dynatemp_range;
    temperature_ = least + (most - least) * std::pow(share, c_.params.dynatemp_exponent);
  }

  double weight(int id) const {
    return std::exp((logits_[id] - logits_[order_[0]]) / temperature_);
  }

  double total() const {
    double sum = 0;
    for (const int id : order_) sum += weight(id);
    return sum;
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

  // Returns the number of tokens, from the front of `order`, that together reach this share of
  // weight.
  std::size_t size_of_share(const std::vector<int>& order, double share) {
    const double all = total();
    double reached = 0;
    std::size_t size = 0;
    while (size < order.size() && reached < share * all) {
      reached += weight(order[size++]);
      if (std::abs(reached / all - share) < kMargin) clear_ = false;
    }
    return size;
  }

  void filter_typical() {
    if (c_.params.typical_p >= 1) return;
    const double all = total();
    const auto surprise = [&](int id) { return -std::log(weight(id) / all); };
    double entropy = 0;
    for (const int id : order_) entropy += weight(id) > 0 ? weight(id) / all * surprise(id) : 0;
    const auto distance = [&](int id) { return std::abs(surprise(id) - entropy); };
    std::vector<int> order = order_;
    std::sort(order.begin(), order.end());
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return distance(a) < distance(b); });
    const std::size_t size = size_of_share(order, c_.params.typical_p);
    // The first dropped token may be as far on the other side of the entropy: float32 may swap
    // them.
    if (size < order.size() && logits_[order[size]] != logits_[order[size - 1]] &&
        distance(order[size]) - distance(order[size - 1]) < kMargin)
      clear_ = false;
    std::vector<bool> kept(logits_.size(), false);
    for (std::size_t i = 0; i < size; ++i) kept[order[i]] = true;
    std::erase_if(order_, [&](int id) { return !kept[id]; });
  }

  void filter_top_p() {
    if (c_.params.top_p < 1) order_.resize(size_of_share(order_, c_.params.top_p));
  }

  void filter_xtc() {
    if (random_uniform({.seed = 99, .position = c_.position, .purpose = RandomPurpose::kXtcCoin}) >=
        c_.params.xtc_probability)
      return;
    const double all = total();
    std::size_t num_top = 0;
    for (const int id : order_) {
      const double share = weight(id) / all;
      if (std::abs(share - c_.params.xtc_threshold) < kMargin) clear_ = false;
      num_top += share >= c_.params.xtc_threshold ? 1 : 0;
    }
    if (num_top > 1)
      order_.erase(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(num_top) - 1);
  }

  int draw() {
    std::vector<int> ids = order_;
    std::sort(ids.begin(), ids.end());
    const double all = total();
    const double target = all * random_uniform({.seed = 99, .position = c_.position});
    double reached = 0;
    for (const int id : ids) {
      reached += weight(id);
      if (std::abs(reached - target) < kMargin * all) clear_ = false;
      if (reached > target) return id;
    }
    return ids.back();
  }

  const Case& c_;
  std::vector<double> logits_;
  double temperature_ = 1;
  std::vector<int> order_;  // kept ids, likeliest first
  bool clear_ = true;
};

// Returns biases that are multiples of a power of two, bans that leave some token, and bad words of
// up to two tokens.
std::shared_ptr<const TokenRules> random_rules(std::mt19937& generator, const Case& c) {
  const int vocab_size = static_cast<int>(c.logits.size());
  const auto any_token = [&] { return static_cast<int>(generator() % vocab_size); };
  TokenRules rules = {.logit_bias = {{any_token(), 2.5f}, {any_token(), -100}},
                      .bad_words = {{any_token()}, {c.history.back(), any_token()}}};
  if (generator() % 2 == 0) {
    std::vector<int> allowed;
    for (int id = 0; id < vocab_size; id += 1 + static_cast<int>(generator() % 2))
      allowed.push_back(id);
    rules.allowed_tokens = mask_of(allowed, vocab_size);
  }
  return std::make_shared<const TokenRules>(std::move(rules));
}

// Returns a case whose logits and penalties are multiples of a power of two, so that float32 and
// double agree on every tie.
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
  if (generator() % 3 == 0) {
    c.params.dynatemp_range = pick(0.25f, 0.0f);
    c.params.dynatemp_exponent = pick(0.5f, 1.0f, 2.0f);
    c.params.typical_p = pick(1.0f, 0.3f, 0.9f);
    c.params.xtc_probability = pick(0.0f, 0.5f, 1.0f);
    c.params.xtc_threshold = pick(0.02f, 0.1f);
    c.params.dry_multiplier = pick(0.0f, 0.5f);
    c.params.dry_base = 2;
    c.params.dry_allowed_length = pick(1, 2);
  }
  for (int i = 0; i < 10; ++i) c.history.push_back(static_cast<int>(generator() % vocab_size));
  c.bans = vocab_size > 3 && generator() % 3 == 0;
  c.eos = {vocab_size - 1};
  if (vocab_size > 3) c.params.stop_token_ids = {2};
  if (vocab_size > 3 && generator() % 3 == 0) c.params.token_rules = random_rules(generator, c);
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
    const Result<int> token = sampler.sample({.logits = c.logits,
                                              .params = &c.params,
                                              .bans_stop_tokens = c.bans,
                                              .eos_token_ids = c.eos,
                                              .state = &state,
                                              .tokens = c.history,
                                              .num_prompt_tokens = 1,
                                              .seed = 99,
                                              .position = c.position});
    ASSERT_TRUE(token.ok()) << "case " << i << ": " << token.status().message();
    ASSERT_EQ(*token, *expected) << "case " << i;
  }
  EXPECT_GT(num_compared, kNumCases * 9 / 10);
}

}  // namespace
}  // namespace pagoda

// Grammars as the engine uses them: masks for every row, ends, forks and preemption. A small rule
// over token ids takes the place of a grammar.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "tests/support/eventually.h"
#include "tests/support/open_engine.h"
#include "tests/support/run_to_end.h"

namespace pagoda {
namespace {

// Allows as i-th token the ids with id % 5 == i % 5, except ends. From min_length on it allows ends
// too, and at max_length the text is complete.
class CountingSource final : public TokenMaskSource {
 public:
  struct Rule {
    int min_length = 0;
    int max_length = 0;
    std::vector<int> eos_token_ids;
  };

  explicit CountingSource(Rule rule) : rule_(std::move(rule)) {}

  std::unique_ptr<TokenMaskSource> clone() const override {
    return std::make_unique<CountingSource>(*this);
  }
  Status fill_mask(std::span<std::uint32_t> bits) override {
    if (num_taken_ == kBreaksAt) return invalid_argument("[rule] it breaks");
    std::fill(bits.begin(), bits.end(), 0);
    for (std::size_t id = num_taken_ % 5; id < bits.size() * 32; id += 5)
      bits[id / 32] |= 1u << id % 32;
    for (const int id : rule_.eos_token_ids) {
      const std::uint32_t bit = 1u << id % 32;
      bits[id / 32] &= ~bit;
      if (num_taken_ >= rule_.min_length) bits[id / 32] |= bit;
    }
    return ok_status();
  }
  Status accept(int token_id) override {
    if (token_id % 5 != num_taken_ % 5 && !is_eos(token_id))
      return internal_error("[rule] token {} is not allowed", token_id);
    ++num_taken_;
    return ok_status();
  }
  bool is_stopped() const override { return num_taken_ >= rule_.max_length; }

  static constexpr int kBreaksAt = 50;

 private:
  bool is_eos(int id) const {
    return std::find(rule_.eos_token_ids.begin(), rule_.eos_token_ids.end(), id) !=
           rule_.eos_token_ids.end();
  }

  Rule rule_;
  int num_taken_ = 0;
};

constexpr int kEos = 1;  // of tiny-llama

class TokenMasks : public ::testing::TestWithParam<Backend> {
 protected:
  std::unique_ptr<Engine> open(EngineOptions options = {}) const {
    options.backend = GetParam();
    options.max_model_len = 256;
    return open_engine(kTinyLlama, options);
  }
};

GenerationRequest held(int min_length, int max_length) {
  GenerationRequest request = {.prompt_token_ids = {5, 6, 7},
                               .sampling = {.seed = 3, .max_tokens = 40}};
  request.mask_source = std::make_shared<CountingSource>(CountingSource::Rule{
      .min_length = min_length, .max_length = max_length, .eos_token_ids = {kEos}});
  return request;
}

void expect_counted(const WholeAnswer& answer) {
  ASSERT_TRUE(answer.error.ok()) << answer.error.message();
  for (std::size_t i = 0; i < answer.token_ids.size(); ++i) {
    const int id = answer.token_ids[i];
    if (id == kEos && i + 1 == answer.token_ids.size()) continue;
    EXPECT_EQ(id % 5, static_cast<int>(i % 5)) << i;
  }
}

TEST_P(TokenMasks, EveryRowIsHeldWhateverElseItAsks) {
  const auto engine = open();
  std::vector<SamplingParams> all(5, SamplingParams{.seed = 7, .max_tokens = 30});
  all[0].temperature = 0;
  all[1].top_k = 3;
  all[2].repetition_penalty = 1.5f;
  all[3].logprobs = 2;
  all[4].top_p = 0.5f;
  for (const SamplingParams& params : all) {
    GenerationRequest request = held(0, 12);
    request.sampling = params;
    const WholeAnswer answer = run_to_end(*engine, request);
    expect_counted(answer);
    EXPECT_EQ(answer.finish_reason, FinishReason::kStop);
  }
}

TEST_P(TokenMasks, EndsWithoutAnEndOfSequenceWhereNothingMayFollow) {
  const auto engine = open();
  for (const bool ignore_eos : {false, true}) {
    GenerationRequest request = held(9, 9);
    request.sampling.ignore_eos = ignore_eos;
    request.sampling.min_tokens = 20;  // the grammar's end comes first
    const WholeAnswer answer = run_to_end(*engine, request);
    expect_counted(answer);
    EXPECT_EQ(answer.finish_reason, FinishReason::kStop);
    EXPECT_EQ(answer.token_ids.size(), 9u);
    EXPECT_NE(answer.token_ids.back(), kEos);
  }
}

TEST_P(TokenMasks, MaxTokensCuts) {
  const auto engine = open();
  GenerationRequest request = held(100, 100);
  const WholeAnswer answer = run_to_end(*engine, request);
  expect_counted(answer);
  EXPECT_EQ(answer.finish_reason, FinishReason::kLength);
  EXPECT_EQ(answer.token_ids.size(), 40u);
}

TEST_P(TokenMasks, ASourceThatBreaksEndsItsSampleAlone) {
  const auto engine = open();
  GenerationRequest breaks = held(100, 100);
  breaks.sampling.max_tokens = 100;
  const std::vector<WholeAnswer> answers = run_to_end(*engine, {breaks, held(9, 9)});
  EXPECT_EQ(answers[0].finish_reason, FinishReason::kError);
  EXPECT_EQ(answers[0].error.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(answers[0].token_ids.size(), static_cast<std::size_t>(CountingSource::kBreaksAt));
  EXPECT_EQ(answers[1].finish_reason, FinishReason::kStop);
}

// Samples share a prompt and a source's first state, and there are too few blocks for all of them.
TEST_P(TokenMasks, SamplesAndPreemptionKeepTheirPlaces) {
  GenerationRequest request = held(30, 36);
  request.sampling.n = 6;
  const std::vector<WholeAnswer> roomy = run_to_end(*open(), {request, held(5, 20)});
  const auto engine = open({.block_size = 8, .num_kv_blocks = 16});
  const std::vector<WholeAnswer> tight = run_to_end(*engine, {request, held(5, 20)});
  EXPECT_GT(engine->stats().num_preemptions, 0u);
  for (std::size_t i = 0; i < roomy.size(); ++i) {
    expect_counted(tight[i]);
    EXPECT_EQ(tight[i].token_ids, roomy[i].token_ids);
    EXPECT_EQ(tight[i].finish_reason, roomy[i].finish_reason);
  }
  EXPECT_NE(roomy[0].token_ids, roomy[1].token_ids);
}

// Counts as well, but its mask is often late.
class LateSource final : public TokenMaskSource {
 public:
  explicit LateSource(unsigned seed) : random_(seed) {}

  std::unique_ptr<TokenMaskSource> clone() const override {
    auto copy = std::make_unique<LateSource>(*this);
    copy->random_.seed(static_cast<unsigned>(random_()));
    return copy;
  }
  Status fill_mask(std::span<std::uint32_t> bits) override { return rule_.fill_mask(bits); }
  bool is_mask_near() const override { return is_there_; }
  bool wait_for_mask(Clock::TimePoint deadline) override {
    is_there_ |= deadline == Clock::TimePoint::max() || random_() % 3 == 0;
    return is_there_;
  }
  Status accept(int token_id) override {
    is_there_ = false;
    return rule_.accept(token_id);
  }
  bool is_stopped() const override { return rule_.is_stopped(); }

 private:
  CountingSource rule_{{.min_length = 30, .max_length = 36, .eos_token_ids = {kEos}}};
  mutable std::mt19937 random_;
  bool is_there_ = true;
};

// Returns requests, each with another method that keeps a state or draws on the host.
std::vector<GenerationRequest> held_in_many_ways() {
  std::vector<GenerationRequest> requests(6, held(30, 36));
  requests[0].sampling.n = 3;
  requests[1].sampling.logprobs = 2;
  requests[1].sampling.repetition_penalty = 1.3f;
  requests[2].sampling.mirostat = 2;
  requests[3].sampling.dry_multiplier = 0.8f;
  requests[3].sampling.dry_allowed_length = 1;
  requests[4].sampling.temperature = 0;
  requests[5].mask_source = nullptr;
  for (GenerationRequest& request : requests) request.hash_logits = true;
  return requests;
}

// With 24 blocks not all sequences fit, so some are computed again from their prompts meanwhile.
TEST_P(TokenMasks, ASampleThatWaitsForItsMaskSaysTheSame) {
  std::vector<GenerationRequest> requests = held_in_many_ways();
  const std::vector<WholeAnswer> in_time = run_to_end(*open(), requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].mask_source != nullptr)
      requests[i].mask_source = std::make_shared<LateSource>(static_cast<unsigned>(17 + i));
  }
  for (const int num_blocks : {0, 24}) {
    const auto engine = open({.block_size = 8, .num_kv_blocks = num_blocks});
    const std::vector<WholeAnswer> late = run_to_end(*engine, requests);
    ASSERT_EQ(late.size(), in_time.size());
    for (std::size_t i = 0; i < late.size(); ++i) {
      ASSERT_TRUE(late[i].error.ok()) << late[i].error.message();
      EXPECT_EQ(late[i].token_ids, in_time[i].token_ids) << i;
      EXPECT_EQ(late[i].logits_hash, in_time[i].logits_hash) << i;
      EXPECT_EQ(late[i].finish_reason, in_time[i].finish_reason) << i;
      ASSERT_EQ(late[i].logprobs.size(), in_time[i].logprobs.size());
      for (std::size_t t = 0; t < late[i].logprobs.size(); ++t)
        EXPECT_EQ(late[i].logprobs[t].chosen.logprob, in_time[i].logprobs[t].chosen.logprob);
    }
    const EngineStats stats = stats_at_rest(*engine);
    std::size_t num_tokens = 0;
    for (const WholeAnswer& answer : late) num_tokens += answer.token_ids.size();
    EXPECT_EQ(stats.num_generated_tokens, num_tokens);
    // With lookahead rows wait for their masks instead.
    if (stats.num_lookahead_steps == 0) {
      EXPECT_GT(stats.num_deferred_draws, 10u);
    }
  }
}

// Has its masks, from the second one on, only when the test releases them.
class HeldUpSource final : public TokenMaskSource {
 public:
  explicit HeldUpSource(const std::atomic<bool>* is_released) : is_released_(is_released) {}

  std::unique_ptr<TokenMaskSource> clone() const override {
    return std::make_unique<HeldUpSource>(*this);
  }
  Status fill_mask(std::span<std::uint32_t> bits) override { return rule_.fill_mask(bits); }
  bool is_mask_near() const override { return is_first_ || *is_released_; }
  bool wait_for_mask(Clock::TimePoint deadline) override {
    while (!is_mask_near() && Clock::system().now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return is_mask_near();
  }
  Status accept(int token_id) override {
    is_first_ = false;
    return rule_.accept(token_id);
  }
  bool is_stopped() const override { return rule_.is_stopped(); }

 private:
  CountingSource rule_{{.min_length = 9, .max_length = 9, .eos_token_ids = {kEos}}};
  const std::atomic<bool>* is_released_;
  bool is_first_ = true;
};

TEST(LateMasks, OthersGoOnWhileSamplesWait) {
  std::atomic<bool> is_released = false;
  const auto engine = open_engine(kTinyLlama, {.backend = Backend::kCpu, .max_model_len = 256});
  GenerationRequest request = held(9, 9);
  const WholeAnswer expected = run_to_end(*engine, request);
  request.mask_source = std::make_shared<HeldUpSource>(&is_released);
  request.sampling.n = 4;
  std::atomic<int> num_tokens = 0, num_ends = 0;
  std::vector<int> first_sample;
  const auto id = engine->submit(request, [&](OutputEvent event) {
    num_tokens += static_cast<int>(event.token_ids.size());
    if (event.sample_index == 0)
      first_sample.insert(first_sample.end(), event.token_ids.begin(), event.token_ids.end());
    if (event.finish_reason != FinishReason::kNone) ++num_ends;
  });
  ASSERT_TRUE(id.ok());
  ASSERT_TRUE(eventually([&] { return num_tokens == 4; }));  // the first masks were ready
  const WholeAnswer other = run_to_end(
      *engine, GenerationRequest{.prompt_token_ids = {9, 8},
                                 .sampling = {.seed = 1, .max_tokens = 50, .ignore_eos = true}});
  EXPECT_EQ(other.token_ids.size(), 50u);
  EXPECT_EQ(num_tokens, 4);
  is_released = true;
  EXPECT_TRUE(eventually([&] { return num_ends == 4; }));
  EXPECT_EQ(first_sample, expected.token_ids);
}

INSTANTIATE_TEST_SUITE_P(Backends, TokenMasks, ::testing::ValuesIn(backends_here()),
                         [](const auto& info) { return std::string(backend_name(info.param)); });

}  // namespace
}  // namespace pagoda

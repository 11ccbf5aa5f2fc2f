// Grammars as the engine meets them: masks for every row, ends, forks and preemption. A small rule
// over token ids stands for a grammar.
#include <gtest/gtest.h>

#include "tests/support/open_engine.h"
#include "tests/support/run_to_end.h"

namespace pagoda {
namespace {

const std::string kTinyLlama = std::string(PAGODA_SOURCE_DIR) + "/tests/golden/data/tiny-llama";

// The i-th token has an id with id % 5 == i % 5, but is no end; from `min_length` on, ends are
// allowed too, and at max_length the text is complete.
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
    request.sampling.min_tokens = 20;  // the grammar's end goes before it
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

// Samples share a prompt and a source's first state, and blocks are too few for all of them.
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

INSTANTIATE_TEST_SUITE_P(Backends, TokenMasks, ::testing::ValuesIn(built_backends()),
                         [](const auto& info) { return std::string(backend_name(info.param)); });

}  // namespace
}  // namespace pagoda

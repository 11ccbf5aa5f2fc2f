// A registered LogitsProcessor acts on every row, whether the row is drawn on the host or
// elsewhere.
#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "sampling/host/logits_processor.h"
#include "tests/support/open_engine.h"
#include "tests/support/run_to_end.h"

namespace pagoda {
namespace {

// Makes a sequence count up: the id after the last token's gets by far the largest logit.
class Counting : public LogitsProcessor {
 public:
  bool acts_on(const LogitsContext&) const override { return true; }
  void process(const LogitsContext& row, std::span<float> logits) const override {
    logits[row.tokens.back() + 1] += 1000;
    const std::lock_guard lock(mutex_);
    threads_.insert(std::this_thread::get_id());
  }

  std::size_t num_threads() const { return threads_.size(); }

 private:
  mutable std::mutex mutex_;
  mutable std::set<std::thread::id> threads_;
};

class LogitsProcessors : public ::testing::TestWithParam<std::tuple<Backend, KvCacheLayout>> {};

TEST_P(LogitsProcessors, ActOnEveryRow) {
  const auto& [backend, layout] = GetParam();
  const auto counting = std::make_shared<Counting>();
  const std::unique_ptr<Engine> engine = open_engine(kTinyLlama, {.backend = backend,
                                                                  .num_threads = 2,
                                                                  .max_model_len = 64,
                                                                  .kv_cache_layout = layout,
                                                                  .logits_processors = {counting}});
  ASSERT_NE(engine, nullptr);
  std::vector<GenerationRequest> requests;
  for (const SamplingParams& sampling :
       {SamplingParams{.temperature = 0}, SamplingParams{.top_k = 5, .top_p = 0.9f},
        SamplingParams{.repetition_penalty = 1.1f, .n = 3}, SamplingParams{.mirostat = 2}}) {
    GenerationRequest& request = requests.emplace_back();
    request.prompt_token_ids = {5, 6, 20 + static_cast<int>(requests.size())};
    request.sampling = sampling;
    request.sampling.max_tokens = 8;
    request.sampling.ignore_eos = true;
  }
  const std::vector<WholeAnswer> answers = run_to_end(*engine, requests);
  ASSERT_EQ(answers.size(), 6u);
  const int request_of[] = {0, 1, 2, 2, 2, 3};
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ASSERT_TRUE(answers[i].error.ok()) << answers[i].error.message();
    int expected = requests[request_of[i]].prompt_token_ids.back();
    ASSERT_EQ(answers[i].token_ids.size(), 8u);
    for (const int token : answers[i].token_ids) EXPECT_EQ(token, ++expected) << "answer " << i;
  }
  EXPECT_EQ(counting->num_threads(), 1u);  // the engine's
}

// A token that a processor has chosen has the log-probability of a scored prompt, which no
// processor changes.
TEST_P(LogitsProcessors, LogProbabilitiesAreOfTheRawLogits) {
  const auto& [backend, layout] = GetParam();
  const std::unique_ptr<Engine> engine =
      open_engine(kTinyLlama, {.backend = backend,
                               .num_threads = 2,
                               .max_model_len = 64,
                               .kv_cache_layout = layout,
                               .logits_processors = {std::make_shared<Counting>()}});
  ASSERT_NE(engine, nullptr);
  GenerationRequest request = {
      .prompt_token_ids = {5, 6, 20},
      .sampling = {.repetition_penalty = 1.3f, .max_tokens = 8, .ignore_eos = true, .logprobs = 3}};
  const WholeAnswer answer = run_to_end(*engine, request);
  ASSERT_EQ(answer.logprobs.size(), 8u);
  request.prompt_token_ids.insert(request.prompt_token_ids.end(), answer.token_ids.begin(),
                                  answer.token_ids.end());
  request.sampling = {.max_tokens = 0, .prompt_logprobs = 3};
  const WholeAnswer scored = run_to_end(*engine, request);
  ASSERT_EQ(scored.prompt_logprobs.size(), 11u);
  int num_unlikely = 0;
  for (int i = 0; i < 8; ++i) {
    const TokenLogprobs& drawn = answer.logprobs[i];
    const TokenLogprobs& read = *scored.prompt_logprobs[3 + i];
    EXPECT_EQ(drawn.chosen.token_id, 21 + i);
    EXPECT_EQ(read.chosen.token_id, 21 + i);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(drawn.chosen.logprob),
              std::bit_cast<std::uint32_t>(read.chosen.logprob));
    EXPECT_EQ(drawn.rank, read.rank);
    ASSERT_EQ(drawn.top.size(), 3u);
    EXPECT_EQ(drawn.top[0].token_id, read.top[0].token_id);
    num_unlikely += drawn.rank > 1;
  }
  EXPECT_GT(num_unlikely, 4);
}

INSTANTIATE_TEST_SUITE_P(All, LogitsProcessors,
                         ::testing::Combine(::testing::ValuesIn(backends_here()),
                                            ::testing::Values(KvCacheLayout::kPaged,
                                                              KvCacheLayout::kContiguous)));

}  // namespace
}  // namespace pagoda

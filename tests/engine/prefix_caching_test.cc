// Prefix caching and several samples of a prompt, as an engine's users see them: what is cached, at
// what cost, and what it costs when it is off.
#include <gtest/gtest.h>

#include <future>

#include "tests/support/open_engine.h"
#include "tests/support/run_to_end.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/windowed_checkpoint.h"

namespace pagoda {
namespace {

GenerationRequest greedy(int num_prompt_tokens, int max_tokens) {
  GenerationRequest request;
  for (int i = 0; i < num_prompt_tokens; ++i) request.prompt_token_ids.push_back(4 + i * 7 % 500);
  request.sampling = {.temperature = 0, .max_tokens = max_tokens, .ignore_eos = true};
  return request;
}

class PrefixCaching : public ::testing::Test {
 protected:
  void start(bool enabled, const std::string& path = kTinyLlama) {
    engine_ = open_engine(
        path, {.backend = Backend::kCpu, .max_model_len = 256, .enable_prefix_caching = enabled});
    ASSERT_NE(engine_, nullptr);
  }

  // Runs a request; returns how many tokens of its prompt were cached.
  int run(const GenerationRequest& request) {
    std::promise<int> cached;
    const Result<RequestId> id = engine_->submit(request, [&](const OutputEvent& event) {
      if (event.finish_reason != FinishReason::kNone) cached.set_value(event.num_cached_tokens);
    });
    EXPECT_TRUE(id.ok());
    return cached.get_future().get();
  }

  std::unique_ptr<Engine> engine_;
};

// With and without windows.
TEST_F(PrefixCaching, FindsAPromptAgainUpToItsLastTokenAndTellsOfWholeBlocks) {
  const testing::TemporaryFolder windowed;
  testing::make_windowed_checkpoint(windowed);
  for (const std::string& path : {std::string(kTinyLlama), windowed.path()}) {
    SCOPED_TRACE(path);
    start(true, path);
    EXPECT_EQ(run(greedy(40, 8)), 0);
    EXPECT_EQ(run(greedy(40, 8)), 32);
    EXPECT_EQ(run(greedy(33, 8)), 32);
    const EngineStats stats = stats_at_rest(*engine_);
    EXPECT_EQ(stats.num_prefix_queries, 113u);
    EXPECT_EQ(stats.num_prefix_hits, 64u);
    EXPECT_EQ(stats.num_prompt_tokens, 42u);
    EXPECT_EQ(stats.num_free_blocks, stats.num_blocks);
  }
}

TEST_F(PrefixCaching, FindsNothingOnceItIsReset) {
  const testing::TemporaryFolder windowed;
  testing::make_windowed_checkpoint(windowed);
  for (const std::string& path : {std::string(kTinyLlama), windowed.path()}) {
    SCOPED_TRACE(path);
    start(true, path);
    const WholeAnswer alone = run_to_end(*engine_, greedy(40, 200));
    EXPECT_EQ(run(greedy(40, 8)), 32);
    engine_->reset_prefix_cache(/*cache_owner=*/"");
    EXPECT_EQ(run(greedy(40, 8)), 0);
    EXPECT_EQ(run(greedy(40, 8)), 32);
    // Running requests continue.
    std::promise<void> started;
    std::promise<std::vector<int>> ended;
    std::vector<int> token_ids;
    const auto id = engine_->submit(greedy(40, 200), [&](const OutputEvent& event) {
      if (token_ids.empty()) started.set_value();
      token_ids.insert(token_ids.end(), event.token_ids.begin(), event.token_ids.end());
      if (event.finish_reason != FinishReason::kNone) ended.set_value(token_ids);
    });
    ASSERT_TRUE(id.ok());
    started.get_future().wait();
    engine_->reset_prefix_cache(/*cache_owner=*/"");
    EXPECT_EQ(ended.get_future().get(), alone.token_ids);
    const EngineStats stats = stats_at_rest(*engine_);
    EXPECT_EQ(stats.num_free_blocks, stats.num_blocks);
  }
  start(false);
  engine_->reset_prefix_cache(/*cache_owner=*/"");
  EXPECT_EQ(run(greedy(40, 8)), 0);
}

TEST_F(PrefixCaching, AConversationGoesOnFromTheLastAnswer) {
  start(true);
  GenerationRequest request = greedy(21, 9);
  const WholeAnswer answer = run_to_end(*engine_, request);
  request.prompt_token_ids.insert(request.prompt_token_ids.end(), answer.token_ids.begin(),
                                  answer.token_ids.end());
  for (int i = 0; i < 5; ++i) request.prompt_token_ids.push_back(9);
  EXPECT_EQ(run(request), 16);
  const EngineStats stats = stats_at_rest(*engine_);
  // 29 tokens are found again: the first prompt and answer without the answer's last token, which
  // was never computed.
  EXPECT_EQ(stats.num_prompt_tokens, 21u + 35 - 29);
  EXPECT_EQ(stats.num_block_copies, 0u);  // the last block was reused, not copied
}

TEST_F(PrefixCaching, SaltsAreApartAndScoredPromptsAreComputed) {
  start(true);
  GenerationRequest request = greedy(40, 2);
  request.cache_salt = "a";
  EXPECT_EQ(run(request), 0);
  EXPECT_EQ(run(greedy(40, 2)), 0);
  EXPECT_EQ(run(request), 32);
  request.sampling.prompt_logprobs = 0;
  EXPECT_EQ(run(request), 0);
}

TEST_F(PrefixCaching, EmbeddingsComputeTheRowsThatTheyPool) {
  start(true);
  GenerationRequest request = greedy(40, 2);
  EXPECT_EQ(run(request), 0);
  ask_for_embedding(Pooling::kLast, request);
  EXPECT_EQ(run(request), 32);
  ask_for_embedding(Pooling::kMean, request);
  EXPECT_EQ(run(request), 0);
  ask_for_embedding(Pooling::kFirst, request);
  EXPECT_EQ(run(request), 0);
}

TEST_F(PrefixCaching, SwitchedOffItCostsNothing) {
  start(false);
  EXPECT_EQ(run(greedy(40, 8)), 0);
  EXPECT_EQ(run(greedy(40, 8)), 0);
  const EngineStats stats = stats_at_rest(*engine_);
  EXPECT_EQ(stats.num_hashed_blocks, 0u);
  EXPECT_EQ(stats.num_block_copies, 0u);
  EXPECT_EQ(stats.num_prefix_queries, 0u);
  EXPECT_EQ(stats.num_prompt_tokens, 80u);
}

TEST_F(PrefixCaching, APromptIsComputedOnceForAllItsSamples) {
  start(false);
  GenerationRequest request = greedy(40, 8);
  request.sampling.n = 4;
  request.sampling.temperature = 1.5f;
  request.sampling.seed = 3;
  const std::vector<WholeAnswer> answers = run_to_end(*engine_, std::vector{request});
  EXPECT_NE(answers[0].token_ids, answers[1].token_ids);
  for (const WholeAnswer& answer : answers) EXPECT_EQ(answer.token_ids.size(), 8u);
  const EngineStats stats = stats_at_rest(*engine_);
  EXPECT_EQ(stats.num_prompt_tokens, 40u);
  EXPECT_EQ(stats.num_block_copies, 3u);
  EXPECT_EQ(stats.num_generated_tokens, 32u);
}

}  // namespace
}  // namespace pagoda

// Steps that start before the previous step's tokens are read change no result. Tokens,
// log-probabilities, ends and logits have the same bits as without lookahead, while requests join,
// leave, stop, are cancelled or preempted.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <future>
#include <iostream>
#include <random>

#include "tests/support/open_engine.h"
#include "tests/support/stepped_engine.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/windowed_checkpoint.h"

namespace pagoda {
namespace {

constexpr std::uint64_t kSeed = 20261122;

// The step at which a request arrives, and how long after it a sample is cancelled, if at all.
struct Arrival {
  GenerationRequest request;
  int at_step = 0;
  int cancelled_after = -1;  // steps; -1: never
};

enum class Kind { kOnDevice, kPenalised, kMixed };

// Draws greedy and random requests with the filters that devices have. For kMixed some need the
// host's state; for kPenalised two in three need the counts on the device.
std::vector<Arrival> draw_arrivals(Kind kind, int vocab_size) {
  std::mt19937_64 random(kSeed);
  const auto below = [&](int end) { return static_cast<int>(random() % std::uint64_t(end)); };
  std::vector<Arrival> arrivals;
  for (int i = 0; i < 40; ++i) {
    GenerationRequest request = {.priority = i % 7 == 0 ? 1 : 0};
    for (int length = 1 + below(60); length > 0; --length)
      request.prompt_token_ids.push_back(4 + below(length > 30 ? 2 : vocab_size - 4));
    request.sampling = {.temperature = i % 2 == 0 ? 0.0f : 0.8f,
                        .top_k = i % 3 == 1 ? 40 : 0,
                        .top_p = i % 4 == 1 ? 0.9f : 1.0f,
                        .min_p = i % 5 == 3 ? 0.05f : 0.0f,
                        .seed = 7 + i,
                        .n = i % 9 == 4 ? 3 : 1,
                        .max_tokens = 1 + below(50),
                        .ignore_eos = i % 4 != 0};
    // So many ids that most of these requests stop.
    for (int id = 0; i % 3 == 0 && id < vocab_size; id += 11)
      request.sampling.stop_token_ids.push_back(id);
    if (i % 4 >= 2) request.sampling.logprobs = i % 3;
    if (kind == Kind::kPenalised && i % 3 != 0) {
      request.sampling.repetition_penalty = i % 3 == 1 ? 1.3f : 0.8f;
      request.sampling.frequency_penalty = i % 5 == 1 ? 0.6f : 0.0f;
      request.sampling.presence_penalty = i % 7 == 1 ? -0.9f : 0.0f;
      if (i % 2 == 0) request.sampling.repeat_last_n = i - 1;
    }
    if (kind == Kind::kMixed) {
      if (i % 5 == 1) request.sampling.repetition_penalty = 1.3f;
      if (i % 6 == 3) request.sampling.min_tokens = std::min(10, request.sampling.max_tokens);
      if (i % 6 == 2) request.sampling.prompt_logprobs = 1;
      if (i % 7 == 6) ask_for_embedding(Pooling::kMean, request);
    }
    arrivals.push_back({.request = std::move(request), .at_step = i < 10 ? 0 : below(120)});
    if (i % 8 == 5) arrivals.back().cancelled_after = 1 + below(20);
  }
  return arrivals;
}

struct Outcome {
  std::vector<WholeAnswer> answers;
  SchedulerCounters counters;
  int num_steps = 0;
  std::uint64_t num_steps_ahead = 0;
  BlockTierCounters tier;
};

Outcome run_all(const std::string& path, const SteppedEngineOptions& options, Kind kind) {
  SteppedEngine engine(path, options);
  std::vector<Arrival> arrivals = draw_arrivals(kind, engine.vocab_size());
  std::vector<std::size_t> first_answers(arrivals.size());
  Outcome run;
  const auto comes = [&](const Arrival& arrival) { return arrival.at_step == run.num_steps; };
  for (; run.num_steps < 120 || !engine.idle(); ++run.num_steps) {
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      if (comes(arrivals[i])) first_answers[i] = engine.add(arrivals[i].request);
      if (arrivals[i].cancelled_after >= 0 &&
          run.num_steps == arrivals[i].at_step + arrivals[i].cancelled_after)
        engine.cancel_sample(first_answers[i], 0);
    }
    if (!engine.idle()) engine.step();
    if (::testing::Test::HasFatalFailure()) return run;
  }
  // Answers in the order of the requests, not of their arrival.
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    for (int sample = 0; sample < arrivals[i].request.sampling.n; ++sample)
      run.answers.push_back(engine.answers()[first_answers[i] + sample]);
  }
  run.counters = engine.scheduler().counters();
  run.num_steps_ahead = engine.stats().num_lookahead_steps;
  run.tier = engine.stats().tier;
  EXPECT_EQ(engine.scheduler().num_free_blocks(), options.num_blocks);
  return run;
}

void expect_same(const TokenLogprobs& with, const TokenLogprobs& without) {
  EXPECT_EQ(with.chosen.token_id, without.chosen.token_id);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(with.chosen.logprob),
            std::bit_cast<std::uint32_t>(without.chosen.logprob));
  EXPECT_EQ(with.rank, without.rank);
  ASSERT_EQ(with.top.size(), without.top.size());
  for (std::size_t i = 0; i < with.top.size(); ++i) {
    EXPECT_EQ(with.top[i].token_id, without.top[i].token_id);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(with.top[i].logprob),
              std::bit_cast<std::uint32_t>(without.top[i].logprob));
  }
}

// Expects the same answers. A cancelled answer may be a step longer or shorter, since its steps run
// at other times.
void expect_same(const WholeAnswer& with, const WholeAnswer& without) {
  ASSERT_TRUE(with.error.ok()) << with.error.message();
  const bool is_cancelled = with.finish_reason == FinishReason::kCancelled ||
                            without.finish_reason == FinishReason::kCancelled;
  const std::size_t common = std::min(with.token_ids.size(), without.token_ids.size());
  EXPECT_TRUE(std::equal(with.token_ids.begin(),
                         with.token_ids.begin() + static_cast<std::ptrdiff_t>(common),
                         without.token_ids.begin()));
  const std::size_t num_logprobs = std::min(with.logprobs.size(), without.logprobs.size());
  for (std::size_t i = 0; i < num_logprobs; ++i) expect_same(with.logprobs[i], without.logprobs[i]);
  if (is_cancelled) return;
  EXPECT_EQ(with.token_ids.size(), without.token_ids.size());
  EXPECT_EQ(with.finish_reason, without.finish_reason);
  EXPECT_EQ(with.logits_hash, without.logits_hash);
  EXPECT_EQ(with.logprobs.size(), without.logprobs.size());
  EXPECT_EQ(with.embedding, without.embedding);
  ASSERT_EQ(with.prompt_logprobs.size(), without.prompt_logprobs.size());
  for (std::size_t i = 1; i < with.prompt_logprobs.size(); ++i)
    expect_same(*with.prompt_logprobs[i], *without.prompt_logprobs[i]);
}

class Lookahead : public ::testing::TestWithParam<Backend> {
 protected:
  SteppedEngineOptions options_{.backend = GetParam(),
                                .block_size = 8,
                                .num_blocks = 160,
                                .max_model_len = 120,
                                .max_num_batched_tokens = 64};
  std::string path_ = kTinyLlama;

  // Compares a run with lookahead and a run without; returns the run with lookahead.
  Outcome compare(Kind kind) {
    options_.has_lookahead = false;
    const Outcome without = run_all(path_, options_, kind);
    options_.has_lookahead = true;
    Outcome with = run_all(path_, options_, kind);
    std::cout << fmt::format("{} steps, {} with lookahead, {} ahead, {} dropped, {} preemptions\n",
                             without.num_steps, with.num_steps, with.num_steps_ahead,
                             with.counters.num_dropped_positions, with.counters.num_preemptions);
    EXPECT_EQ(with.answers.size(), without.answers.size());
    int num_stops = 0;
    for (std::size_t i = 0; i < with.answers.size() && !HasFailure(); ++i) {
      SCOPED_TRACE(fmt::format("answer {}", i));
      expect_same(with.answers[i], without.answers[i]);
      const FinishReason reason = with.answers[i].finish_reason;
      num_stops += reason == FinishReason::kStop || reason == FinishReason::kCancelled;
    }
    EXPECT_GT(num_stops, 8);
    EXPECT_GT(with.counters.num_dropped_positions, 0u);
    EXPECT_LE(with.counters.num_dropped_positions, static_cast<std::uint64_t>(num_stops));
    return with;
  }
};

TEST_P(Lookahead, ChangesNothingAndIsSeldomOff) {
  const Outcome with = compare(Kind::kOnDevice);
  EXPECT_GT(with.num_steps_ahead, with.num_steps * 9u / 10);
}

TEST_P(Lookahead, ChangesNothingWherePreemptionIsFrequent) {
  options_.block_size = 2;
  options_.num_blocks = 80;
  const Outcome with = compare(Kind::kOnDevice);
  EXPECT_GT(with.counters.num_preemptions, 10u);
  EXPECT_GT(with.num_steps_ahead, with.num_steps / 2u);
}

// Some requests have forks, and some sequences are computed again.
TEST_P(Lookahead, ChangesNothingWhereTheDeviceCountsWhatIsPenalised) {
  const Outcome with = compare(Kind::kPenalised);
  EXPECT_GT(with.num_steps_ahead, with.num_steps * 9u / 10);
  options_.block_size = 2;
  options_.num_blocks = 80;
  EXPECT_GT(compare(Kind::kPenalised).counters.num_preemptions, 10u);
}

TEST_P(Lookahead, ChangesNothingOverAPrefixCache) {
  options_.has_prefix_cache = true;
  options_.num_blocks = 60;
  const Outcome with = compare(Kind::kOnDevice);
  EXPECT_GT(with.counters.num_prefix_hits, 50u);
}

TEST_P(Lookahead, ChangesNothingOverAPrefixCacheOfCodes) {
  options_.has_prefix_cache = true;
  options_.num_blocks = 60;
  options_.kv_cache_formats = KvFormats{KvFormat::kInt8, KvFormat::kInt4};
  EXPECT_GT(compare(Kind::kOnDevice).counters.num_prefix_hits, 50u);
}

// Blocks are written to the disk and read back while steps are in flight. The first run leaves
// files for the second.
TEST_P(Lookahead, ChangesNothingOverATierBelowAPrefixCache) {
  const testing::TemporaryFolder folder;
  options_.has_prefix_cache = true;
  options_.num_blocks = 60;
  options_.prefix_cache_dir = folder / "cache";
  const Outcome with = compare(Kind::kOnDevice);
  EXPECT_GT(with.num_steps_ahead, with.num_steps / 2u);
  EXPECT_GT(with.tier.num_read, 10u);
  EXPECT_EQ(with.tier.num_failed, 0u);
}

// Blocks that leave a window are reused while steps in flight still have them in their tables.
TEST_P(Lookahead, ChangesNothingWithSeveralCacheGroups) {
  const testing::TemporaryFolder model, folder;
  testing::make_windowed_checkpoint(model);
  path_ = model.path();
  options_.block_size = 2;
  options_.num_blocks = 140;
  EXPECT_GT(compare(Kind::kOnDevice).counters.num_preemptions, 5u);
  options_.block_size = 8;
  options_.has_prefix_cache = true;
  options_.num_blocks = 90;
  options_.prefix_cache_dir = folder / "cache";
  const Outcome with = compare(Kind::kPenalised);
  EXPECT_GT(with.num_steps_ahead, with.num_steps / 2u);
  EXPECT_GT(with.counters.num_prefix_hits, 50u);
  EXPECT_GT(with.tier.num_read, 10u);
  EXPECT_EQ(with.tier.num_failed, 0u);
}

TEST_P(Lookahead, ChangesNothingForRowsThatNeedTheHost) {
  options_.has_prefix_cache = true;
  compare(Kind::kMixed);
}

// The engine itself looks ahead if its backend works without the host.
TEST_P(Lookahead, IsTheEnginesOwnWhereTheHostNeedNotWait) {
  const auto engine =
      open_engine(kTinyLlama, {.backend = GetParam(), .num_threads = 1, .max_model_len = 256});
  SteppedEngine stepped(kTinyLlama, options_);
  std::vector<GenerationRequest> requests;
  for (int i = 0; i < 8; ++i) {
    requests.push_back({.prompt_token_ids = {5 + i, 9, 7},
                        .sampling = {.temperature = i % 2 == 0 ? 0.0f : 1.0f,
                                     .top_p = 0.9f,
                                     .seed = i,
                                     .n = i == 3 ? 2 : 1,
                                     .max_tokens = 40,
                                     .ignore_eos = true,
                                     .logprobs = 1},
                        .hash_logits = i % 4 == 0});
    if (i == 5) requests.back().sampling.stop_token_ids = {1, 17, 33, 101, 202, 303, 404};
    if (i == 6) requests.back().sampling.frequency_penalty = 0.5f;
    stepped.add(requests.back());
  }
  while (!stepped.idle()) stepped.step();
  const std::vector<WholeAnswer> answers = run_to_end(*engine, requests);
  ASSERT_EQ(answers.size(), stepped.answers().size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].token_ids, stepped.answers()[i].token_ids) << i;
    EXPECT_EQ(answers[i].finish_reason, stepped.answers()[i].finish_reason) << i;
    EXPECT_EQ(answers[i].logprobs.size(), answers[i].token_ids.size()) << i;
    if (answers[i].logits_hash != 0) {
      EXPECT_EQ(answers[i].logits_hash, stepped.answers()[i].logits_hash) << i;
    }
  }
  engine->drain(60);
  const EngineStats stats = engine->stats();
  std::size_t num_tokens = 0;
  for (const WholeAnswer& answer : answers) num_tokens += answer.token_ids.size();
  EXPECT_EQ(stats.num_generated_tokens, num_tokens);
  EXPECT_EQ(stats.num_free_blocks, stats.num_blocks);
  if (GetParam() == Backend::kMlx) {
    EXPECT_GT(stats.num_lookahead_steps, 30u);
    EXPECT_LE(stats.runner.exec.num_evaluations, stats.num_steps);  // log-probabilities included
  } else {
    EXPECT_EQ(stats.num_lookahead_steps, 0u);
  }
}

// The same happens when a stop string is found.
TEST_P(Lookahead, ACancelledSampleRunsForFourStepsMoreAtMost) {
  const auto engine =
      open_engine(kTinyLlama, {.backend = GetParam(), .num_threads = 1, .max_model_len = 256});
  std::promise<void> ended;
  int num_events = 0, num_after = 0;
  RequestId id = 1;  // the first request's
  const GenerationRequest request = {
      .prompt_token_ids = {5, 9, 7},
      .sampling = {.temperature = 0, .max_tokens = 200, .ignore_eos = true}};
  ASSERT_TRUE(engine
                  ->submit(request,
                           [&](const OutputEvent& event) {
                             num_after += num_events > 10 && !event.token_ids.empty();
                             if (++num_events == 10) engine->cancel_sample(id, 0);
                             if (event.finish_reason != FinishReason::kNone) ended.set_value();
                           })
                  .ok());
  ended.get_future().wait();
  EXPECT_LE(num_after, 4);
  engine->drain(60);
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.num_free_blocks, stats.num_blocks);
  EXPECT_LE(stats.num_steps, 10u + 4u);
}

// Returns all backends except the reference, whose lookahead is the same code and whose steps take
// long.
std::vector<Backend> all_but_the_reference() {
  std::vector<Backend> backends = backends_here();
  std::erase(backends, Backend::kReference);
  return backends;
}
INSTANTIATE_TEST_SUITE_P(All, Lookahead, ::testing::ValuesIn(all_but_the_reference()),
                         [](const auto& info) { return std::string(backend_name(info.param)); });

}  // namespace
}  // namespace pagoda

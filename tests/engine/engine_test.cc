// The engine as its users see it: ends, refusals, cancellation, draining. With one tiny checkpoint
// and without text.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <limits>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "ops/attention/attention.h"
#include "tensor/op_profile.h"
#include "tests/support/eventually.h"
#include "tests/support/open_engine.h"
#include "tests/support/run_to_end.h"

namespace pagoda {
namespace {

std::unique_ptr<Engine> open_tiny(EngineOptions options = {}) {
  if (!options.backend) options.backend = Backend::kCpu;
  if (options.max_model_len == 0) options.max_model_len = 256;
  return open_engine(kTinyLlama, options);
}

GenerationRequest greedy(int max_tokens) {
  return {.prompt_token_ids = {5, 6, 7},
          .sampling = {.temperature = 0, .max_tokens = max_tokens, .ignore_eos = true}};
}

// Submits a request; returns how its one sample ends.
std::future<FinishReason> submit(Engine& engine, GenerationRequest request) {
  const auto end = std::make_shared<std::promise<FinishReason>>();
  const Result<RequestId> id = engine.submit(std::move(request), [end](const OutputEvent& event) {
    if (event.finish_reason != FinishReason::kNone) end->set_value(event.finish_reason);
  });
  EXPECT_TRUE(id.ok()) << id.status().message();
  return end->get_future();
}

// Stops the engine's thread at the first event that it delivers, until open() is called. So what a
// test does meanwhile happens between two steps, however fast the machine is.
class Gate {
 public:
  void pass() {
    if (std::exchange(reached_once_, true)) return;
    reached_.set_value();
    opened_.get_future().wait();
  }
  void wait_until_reached() { reached_.get_future().wait(); }
  void open() { opened_.set_value(); }

 private:
  bool reached_once_ = false;  // used by the engine's thread alone
  std::promise<void> reached_, opened_;
};

TEST(Engine, EndsAtTheContextWhateverMaxTokensSays) {
  const auto engine = open_tiny();
  GenerationRequest request = greedy(std::numeric_limits<int>::max());
  request.sampling.repetition_penalty =
      1.3f;  // whose state is sized by the context, not by max_tokens
  const WholeAnswer answer = run_to_end(*engine, request);
  EXPECT_EQ(answer.finish_reason, FinishReason::kLength);
  EXPECT_EQ(answer.token_ids.size(), 256u - 3);
}

TEST(Engine, CountsCallsOfAttentionThatDecodeTheCacheFirst) {
  constexpr int kLayers = 3;
  for (const Backend backend : backends_here()) {
    for (const KvFormats& formats : {KvFormats{KvFormat::kInt8, KvFormat::kInt4},
                                     KvFormats{KvFormat::kInt4, KvFormat::kInt8}}) {
      const auto engine = open_tiny({.backend = backend, .kv_cache_formats = formats});
      run_to_end(*engine, greedy(8));
      const EngineStats stats = stats_at_rest(*engine);
      const AttentionPath path = attention_path(backend, formats, /*head_dim=*/16);
      EXPECT_EQ(stats.runner.exec.num_decoded_attentions,
                path == AttentionPath::kDecoded ? kLayers * stats.num_steps : 0)
          << backend_name(backend) << ", " << kv_formats_name(formats);
    }
  }
}

TEST(Engine, CountsStepsByTheirTokens) {
  const auto engine = open_tiny();
  run_to_end(*engine,
             greedy(4));  // one step of the prompt's 3 tokens, then three steps of one token
  // The last step is counted after its events are delivered.
  EXPECT_TRUE(eventually([&] { return engine->stats().num_steps == 4; }));
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.num_steps_by_tokens[0], 3u);
  EXPECT_EQ(stats.num_steps_by_tokens[1], 1u);
  EXPECT_EQ(std::accumulate(stats.num_steps_by_tokens.begin(), stats.num_steps_by_tokens.end(),
                            std::uint64_t{0}),
            stats.num_steps);
}

TEST(Engine, SaysNoMoreSequencesThanAStepHasTokens) {
  EXPECT_EQ(open_tiny({.max_num_batched_tokens = 8})->limits().max_num_seqs, 8);
  EXPECT_EQ(open_tiny({.max_num_seqs = 4, .max_num_batched_tokens = 8})->limits().max_num_seqs, 4);
}

TEST(Engine, StepsHaveMoreTokensWhereManyThreadsShareThem) {
  const auto tokens = [](EngineOptions options) {
    return open_tiny(std::move(options))->limits().max_num_batched_tokens;
  };
  EXPECT_EQ(tokens({.num_threads = 2}), 512);
  EXPECT_EQ(tokens({.num_threads = 6}), 768);
  EXPECT_EQ(tokens({.num_threads = 20}), 2048);
  EXPECT_EQ(tokens({.num_threads = 6, .max_num_batched_tokens = 600}), 600);
  EXPECT_EQ(tokens({.num_threads = 6, .max_num_seqs = 1000}), 1000);
}

TEST(Engine, StopTokensEndAndStandLast) {
  const auto engine = open_tiny();
  const WholeAnswer free_run = run_to_end(*engine, greedy(8));
  GenerationRequest request = greedy(8);
  request.sampling.stop_token_ids = {free_run.token_ids[3]};
  const WholeAnswer stopped = run_to_end(*engine, request);
  EXPECT_EQ(stopped.finish_reason, FinishReason::kStop);
  EXPECT_EQ(stopped.token_ids,
            std::vector<int>(free_run.token_ids.begin(), free_run.token_ids.begin() + 4));
  request.sampling.min_tokens = 6;  // bans the stop token until then
  EXPECT_GE(run_to_end(*engine, request).token_ids.size(), 6u);
}

TEST(Engine, SeedsReproduceAndSamplesDiffer) {
  const auto engine = open_tiny();
  GenerationRequest request = greedy(12);
  request.sampling.temperature = 1.5f;
  request.sampling.n = 3;
  request.sampling.seed = 42;
  const std::vector<WholeAnswer> first = run_to_end(*engine, std::vector{request});
  const std::vector<WholeAnswer> second = run_to_end(*engine, std::vector{request});
  ASSERT_EQ(first.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(first[i].token_ids, second[i].token_ids);
  EXPECT_NE(first[0].token_ids, first[1].token_ids);
  request.sampling.seed.reset();
  request.sampling.n = 1;
  EXPECT_NE(run_to_end(*engine, request).token_ids, run_to_end(*engine, request).token_ids);
}

TEST(Engine, PromptLogprobsCrossChunkBorders) {
  GenerationRequest request = greedy(0);
  for (int i = 0; i < 100; ++i) request.prompt_token_ids.push_back(4 + i * 3);
  request.sampling.prompt_logprobs = 1;
  const WholeAnswer whole = run_to_end(*open_tiny(), request);
  const WholeAnswer chunked = run_to_end(*open_tiny({.max_num_batched_tokens = 9}), request);
  EXPECT_EQ(whole.finish_reason, FinishReason::kLength);
  ASSERT_EQ(whole.prompt_logprobs.size(), 103u);
  ASSERT_EQ(chunked.prompt_logprobs.size(), 103u);
  EXPECT_FALSE(whole.prompt_logprobs[0].has_value());
  for (std::size_t i = 1; i < 103; ++i) {
    EXPECT_EQ(whole.prompt_logprobs[i]->chosen.token_id, request.prompt_token_ids[i]);
    EXPECT_EQ(whole.prompt_logprobs[i]->chosen.logprob, chunked.prompt_logprobs[i]->chosen.logprob)
        << i;
  }
}

struct Refused {
  GenerationRequest request;
  std::string says;
};

TEST(Engine, RefusesWhatCannotRunAndGoesOn) {
  const auto engine = open_tiny();
  std::vector<Refused> refusals = {{greedy(1), "expected one token at least"},
                                   {greedy(1), "[0, 512)"},
                                   {greedy(1), "[0, 512)"},
                                   {greedy(1), "255"},
                                   {greedy(1), "temperature"},
                                   {greedy(1), "[embedding] expected max_tokens 0"}};
  refusals[0].request.prompt_token_ids.clear();
  refusals[1].request.prompt_token_ids.push_back(512);
  refusals[2].request.prompt_token_ids.push_back(-1);
  refusals[3].request.prompt_token_ids.assign(256, 5);
  refusals[4].request.sampling.temperature = -1;
  refusals[5].request.pooling = Pooling::kMean;
  for (const Refused& refused : refusals) {
    const Result<RequestId> id = engine->submit(refused.request, [](const OutputEvent&) {});
    ASSERT_FALSE(id.ok());
    EXPECT_EQ(id.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(id.status().message().find(refused.says), std::string::npos) << id.status().message();
  }
  EXPECT_EQ(run_to_end(*engine, greedy(3)).token_ids.size(), 3u);
}

TEST(Engine, CancellingFreesEveryBlock) {
  const auto engine = open_tiny({.max_num_seqs = 2});
  Gate gate;
  std::promise<FinishReason> end;
  const Result<RequestId> id = engine->submit(greedy(250), [&](const OutputEvent& event) {
    gate.pass();
    if (event.finish_reason != FinishReason::kNone) end.set_value(event.finish_reason);
  });
  ASSERT_TRUE(id.ok());
  gate.wait_until_reached();
  engine->cancel(*id);
  gate.open();
  EXPECT_EQ(end.get_future().get(), FinishReason::kCancelled);
  EXPECT_TRUE(
      eventually([&] { return engine->stats().num_free_blocks == engine->stats().num_blocks; }));
  engine->cancel(*id);  // its id is unknown by then
  EXPECT_EQ(run_to_end(*engine, greedy(3)).token_ids.size(), 3u);
}

TEST(Engine, CancellingOneSampleLeavesTheOther) {
  const auto engine = open_tiny();
  Gate gate;
  std::promise<void> ended;
  std::vector<FinishReason> reasons(2, FinishReason::kNone);
  int num_ended = 0;
  GenerationRequest request = greedy(100);
  request.sampling.n = 2;
  const Result<RequestId> id = engine->submit(request, [&](const OutputEvent& event) {
    gate.pass();
    if (event.finish_reason == FinishReason::kNone) return;
    reasons[event.sample_index] = event.finish_reason;
    if (++num_ended == 2) ended.set_value();
  });
  ASSERT_TRUE(id.ok());
  gate.wait_until_reached();
  engine->cancel_sample(*id, 1);
  gate.open();
  ended.get_future().wait();
  EXPECT_EQ(reasons[0], FinishReason::kLength);
  EXPECT_EQ(reasons[1], FinishReason::kCancelled);
}

TEST(Engine, AFullQueueRefuses) {
  const auto engine = open_tiny({.max_num_seqs = 1, .max_queue = 2});
  Gate gate;
  ASSERT_TRUE(engine->submit(greedy(2), [&](const OutputEvent&) { gate.pass(); }).ok());
  gate.wait_until_reached();
  int num_refused = 0;
  for (int i = 0; i < 5; ++i) {
    const Result<RequestId> id = engine->submit(greedy(2), [](const OutputEvent&) {});
    if (id.ok()) continue;
    EXPECT_EQ(id.status().code(), StatusCode::kResourceExhausted);
    ++num_refused;
  }
  gate.open();
  EXPECT_GE(num_refused, 3);
  engine->drain(10);
}

TEST(Engine, TheQueueCountsRequestsWhateverTheirSamples) {
  const auto engine = open_tiny({.max_num_seqs = 1, .max_queue = 2});
  Gate gate;
  ASSERT_TRUE(engine->submit(greedy(2), [&](const OutputEvent&) { gate.pass(); }).ok());
  gate.wait_until_reached();
  GenerationRequest of_many_samples = greedy(1);
  of_many_samples.sampling.n = 16;
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(engine->submit(of_many_samples, [](const OutputEvent&) {}).ok());
  EXPECT_EQ(engine->stats().num_waiting_requests, 2);
  EXPECT_EQ(engine->submit(greedy(1), [](const OutputEvent&) {}).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(engine->check_room({.num_requests = 3}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(engine->check_room({.num_bytes = kMaxQueueBytes + 1}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(engine->check_room({}).code(), StatusCode::kResourceExhausted);
  gate.open();
  engine->drain(10);
  EXPECT_EQ(engine->stats().num_waiting_requests, 0);
}

TEST(Engine, ARequestStartsWhenItLeavesTheQueue) {
  const auto engine = open_tiny({.max_num_seqs = 1});
  std::vector<OutputEvent> events[2];
  std::promise<void> ends[2];
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(engine
                    ->submit(greedy(4),
                             [&, i](const OutputEvent& event) {
                               events[i].push_back(event);
                               if (event.finish_reason != FinishReason::kNone) ends[i].set_value();
                             })
                    .ok());
  }
  for (std::promise<void>& end : ends) end.get_future().wait();
  for (const auto& of_request : events) {
    for (const OutputEvent& event : of_request) {
      EXPECT_EQ(event.started, of_request.front().started);
      EXPECT_LE(event.started, event.time);
    }
  }
  EXPECT_GE(events[1].front().started, events[0].front().time);
}

TEST(Engine, RequestsThatAreCancelledBeforeTheyStartLeaveTheQueue) {
  const auto engine = open_tiny({.max_num_seqs = 1, .max_queue = 1});
  Gate gate;
  ASSERT_TRUE(engine->submit(greedy(2), [&](const OutputEvent&) { gate.pass(); }).ok());
  gate.wait_until_reached();
  const Result<RequestId> waiting = engine->submit(greedy(1), [](const OutputEvent&) {});
  ASSERT_TRUE(waiting.ok());
  engine->cancel(*waiting);
  gate.open();
  for (int i = 0; i < 1000 && !engine->check_room({}).ok(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(engine->check_room({}).ok());
  engine->drain(10);
}

TEST(Engine, DrainFinishesWhatRunsAndRefusesTheRest) {
  const auto engine = open_tiny();
  std::future<FinishReason> end = submit(*engine, greedy(100));
  engine->drain(10);
  EXPECT_EQ(end.get(), FinishReason::kLength);
  const Result<RequestId> late = engine->submit(greedy(1), [](const OutputEvent&) {});
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.status().code(), StatusCode::kUnavailable);
}

TEST(Engine, ADrainPastItsDeadlineCancels) {
  const auto engine = open_tiny({.backend = Backend::kReference, .max_model_len = 2048});
  std::future<FinishReason> end = submit(*engine, greedy(2000));
  engine->drain(0.01);
  EXPECT_EQ(end.get(), FinishReason::kCancelled);
}

TEST(Engine, DestructionEndsEveryRequest) {
  std::future<FinishReason> end;
  {
    const auto engine = open_tiny({.backend = Backend::kReference, .max_model_len = 2048});
    end = submit(*engine, greedy(2000));
  }
  EXPECT_EQ(end.get(), FinishReason::kCancelled);
}

TEST(Engine, ALogSumExpIsPaidByWhoAsks) {
  const auto profile = std::make_shared<OpProfile>();
  const auto engine = open_tiny({.op_profile = profile});
  const auto num_rows = [&] {
    double read_bytes = 0;
    for (const OpTotals& totals : profile->ops()) {
      if (totals.call.op == "log_probs") read_bytes += totals.call.read_bytes;
    }
    return read_bytes / (4.0 * engine->limits().vocab_size);
  };
  std::vector<GenerationRequest> requests(3, greedy(8));
  run_to_end(*engine, requests);
  EXPECT_EQ(num_rows(), 0);
  requests[1].sampling.logprobs = 2;
  requests[2].sampling.prompt_logprobs = 0;
  run_to_end(*engine, requests);
  EXPECT_EQ(num_rows(), 8 + 2);
}

TEST(Engine, OnlyWantedRowsAreProjected) {
  const auto engine = open_tiny();
  GenerationRequest request = greedy(4);
  request.prompt_token_ids.assign(50, 9);
  run_to_end(*engine, request);
  EXPECT_TRUE(eventually([&] { return engine->stats().runner.num_logits_rows == 4; }));
  EXPECT_EQ(engine->stats().runner.num_logits_rows_skipped, 49u);
}

}  // namespace
}  // namespace pagoda

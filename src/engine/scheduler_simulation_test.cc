// The scheduler under any traffic: arrivals, cancels, priorities, failures, tiny pools and a tier
// below them, against the plain model of tests/support/scheduler_simulation.h.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>

#include "tests/support/property_seed.h"
#include "tests/support/scheduler_simulation.h"

namespace pagoda {
namespace {

using testing::SchedulerSimulation;
using testing::SimulationOptions;
using testing::StepEvent;

// A whole number in [low, high).
using Draw = std::function<int(int low, int high)>;

template <typename T>
T one_of(const Draw& draw, std::initializer_list<T> values) {
  return values.begin()[draw(0, static_cast<int>(values.size()))];
}

SimulationOptions draw_options(const Draw& draw) {
  SimulationOptions options;
  options.scheduler.block_size = one_of(draw, {1, 2, 3, 4, 4, 16, 24});
  options.scheduler.max_num_seqs = one_of(draw, {draw(1, 9), 8});
  options.scheduler.max_num_batched_tokens = one_of(draw, {1, 3, 8, 9, 16, 64});
  options.scheduler.max_model_len = one_of(draw, {24, 60});
  options.scheduler.eos_token_ids = {SchedulerSimulation::kEos};
  options.scheduler.num_steps_per_turn = one_of(draw, {1, 20, 1024});
  const int window = draw(1, 30);
  using Windows = std::vector<int>;
  options.scheduler.group_windows =
      one_of(draw, {Windows{0}, Windows{0}, Windows{0, window}, Windows{0, window + 8, window},
                    Windows{0, 0, window}, Windows{window}});
  // From too few for the longest sequence to enough for five of them.
  options.num_blocks =
      draw(1, 5 * options.scheduler.max_model_len / options.scheduler.block_size + 2) *
      static_cast<int>(options.scheduler.group_windows.size());
  options.has_prefix_cache = draw(0, 3) > 0;
  if (options.has_prefix_cache && draw(0, 3) > 0) {
    options.tier = {.seed = static_cast<std::uint64_t>(draw(0, 1 << 20)),
                    .dropped = one_of(draw, {0, 4}),
                    .awaited = one_of(draw, {0, 4, 12}),
                    .failed = one_of(draw, {0, 2, 16}),
                    .forgotten = one_of(draw, {0, 2}),
                    .loads_per_step = draw(1, 4)};
  }
  options.has_lookahead = draw(0, 2) == 0;
  if (draw(0, 2) == 0) options.cost = {0.004, one_of(draw, {0.00001, 0.001, 0.02})};
  return options;
}

GenerationRequest draw_request(const Draw& draw) {
  GenerationRequest request;
  request.prompt_token_ids.resize(one_of(draw, {draw(1, 5), draw(1, 24)}));
  // Many prompts have a common prefix.
  const int num_alike = draw(0, 2) * draw(0, 24);
  for (int i = 0; i < static_cast<int>(request.prompt_token_ids.size()); ++i) {
    request.prompt_token_ids[i] = i < num_alike ? 7 : draw(0, SchedulerSimulation::kVocabSize);
  }
  if (draw(0, 4) == 0) request.cache_salt = "s";
  request.priority = one_of(draw, {0, 0, 0, 1, -1});
  SamplingParams& params = request.sampling;
  params.max_tokens = draw(1, 50);
  params.n = one_of(draw, {1, 1, 1, 3});
  params.ignore_eos = draw(0, 2) == 0;
  if (draw(0, 4) == 0) params.stop_token_ids = {3, 4};
  if (draw(0, 4) == 0) params.prompt_logprobs = 0;
  if (params.prompt_logprobs && draw(0, 2) == 0) params.max_tokens = 0;
  if (draw(0, 6) == 0) {
    request.pooling = one_of(draw, {Pooling::kFirst, Pooling::kLast, Pooling::kMean});
    params = {.max_tokens = 0};
  }
  return request;
}

// Adds a request, cancels one, or runs a step, in which something may fail.
void do_something(SchedulerSimulation& simulation, const Draw& draw) {
  const int choice = draw(0, 60);
  const auto any = static_cast<unsigned>(draw(0, 1 << 20));
  if (choice < 10) return simulation.add(draw_request(draw));
  if (choice == 10) return simulation.cancel(any);
  StepEvent event = StepEvent::kNone;
  if (choice == 11) event = StepEvent::kCancelDuringStep;
  if (choice == 12) event = StepEvent::kFailRow;
  if (choice == 13 && any % 4 == 0) event = StepEvent::kFailStep;
  simulation.step(event, any);
}

const Draw kRapidCheck = [](int low, int high) { return *rc::gen::inRange(low, high); };

RC_GTEST_PROP(SchedulerSimulation, KeepsItsPromisesUnderAnyTraffic, ()) {
  SchedulerSimulation simulation(draw_options(kRapidCheck));
  const int num_events = *rc::gen::inRange(0, 120);
  for (int i = 0; i < num_events; ++i) do_something(simulation, kRapidCheck);
  simulation.finish();
}

// Nothing fails or is cancelled here: every answer must be the one that the sequence has alone.
RC_GTEST_PROP(SchedulerSimulation, AnswersNeverDependOnTheBatch, ()) {
  SchedulerSimulation simulation(draw_options(kRapidCheck));
  const int num_requests = *rc::gen::inRange(0, 30);
  for (int i = 0; i < num_requests; ++i) {
    simulation.add(draw_request(kRapidCheck));
    if (*rc::gen::inRange(0, 2) == 0) simulation.step(StepEvent::kNone, 0);
  }
  simulation.finish();
}

// Runs a given number of steps in all, by many schedulers one after another. PAGODA_SEED replays a
// run.
TEST(SchedulerSimulation, KeepsItsPromisesForALongTime) {
  const char* const from_outside = std::getenv("PAGODA_SEED");
  const std::uint64_t seed = from_outside ? std::strtoull(from_outside, nullptr, 10) : 20261120;
  std::cout << "PAGODA_SEED=" << seed << "\n";
  std::mt19937_64 random(seed);
  const Draw draw = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<std::uint64_t>(high - low));
  };
  std::uint64_t num_tokens = 0, num_preemptions = 0, num_hits = 0, num_turns = 0;
  int num_steps_ahead = 0, num_fetched = 0;
  for (int num_steps = 0; num_steps < PAGODA_SIMULATED_STEPS;) {
    SchedulerSimulation simulation(draw_options(draw));
    const int num_events = draw(50, 2000);
    for (int i = 0; i < num_events; ++i) do_something(simulation, draw);
    simulation.finish();
    num_steps += simulation.num_steps();
    num_steps_ahead += simulation.num_steps_ahead();
    num_tokens += simulation.num_tokens();
    num_fetched += simulation.num_fetched_blocks();
    num_hits += simulation.scheduler().counters().num_prefix_hits;
    num_turns += simulation.scheduler().counters().num_priority_turns;
    num_preemptions += simulation.scheduler().counters().num_preemptions;
  }
  std::cout << PAGODA_SIMULATED_STEPS << " steps, " << num_tokens << " tokens, " << num_preemptions
            << " preemptions, " << num_turns << " turns, " << num_hits << " prefix hits, "
            << num_steps_ahead << " steps ahead, " << num_fetched << " fetched blocks\n";
  EXPECT_GT(num_steps_ahead, PAGODA_SIMULATED_STEPS / 5);
  EXPECT_GT(num_fetched, PAGODA_SIMULATED_STEPS / 2000);
  EXPECT_GT(num_turns, static_cast<std::uint64_t>(PAGODA_SIMULATED_STEPS / 5000));
  EXPECT_GT(num_preemptions, static_cast<std::uint64_t>(PAGODA_SIMULATED_STEPS / 500));
}

}  // namespace
}  // namespace pagoda

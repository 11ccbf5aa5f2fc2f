#include "engine/engine_core.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "draw/rng.h"

namespace pagoda {
namespace {

constexpr double kPrefaultShare = 0.5;  // of steps' time, where a system is slow to give memory

// Mixes the engine's seed and the request's number into the seed of a request that brings none.
std::uint64_t draw_seed(std::uint64_t engine_seed, RequestId id) {
  const PhiloxCounter words = philox4x32(
      {static_cast<std::uint32_t>(id), static_cast<std::uint32_t>(id >> 32), 0, 0},
      {static_cast<std::uint32_t>(engine_seed), static_cast<std::uint32_t>(engine_seed >> 32)});
  return (std::uint64_t{words[0]} << 32) | words[1];
}

Status check_prompt(const std::vector<int>& ids, const EngineLimits& limits, int max_tokens) {
  if (ids.empty()) return invalid_argument("[prompt] expected one token at least, got none");
  const int room = limits.max_model_len - (max_tokens > 0 ? 1 : 0);
  if (static_cast<std::int64_t>(ids.size()) > room) {
    return invalid_argument(
        "[prompt] expected at most {} tokens (the context of {} with room for an answer), got {}",
        room, limits.max_model_len, ids.size());
  }
  for (const int id : ids) {
    if (id < 0 || id >= limits.vocab_size)
      return invalid_argument("[prompt] expected token ids in [0, {}), got {}", limits.vocab_size,
                              id);
  }
  return ok_status();
}

// Runs a part of a step. What a backend's library throws is a failed step and no more: it has kept
// nothing.
template <typename Part>
Status guarded(Part&& part) {
  Status status;
  try {
    status = std::forward<Part>(part)();
  } catch (const std::bad_alloc&) {
    status = resource_exhausted("out of memory");
  } catch (const std::exception& error) {
    status = internal_error("{}", error.what());
  }
  return status.ok() ? status : status.with_context("[engine] a step failed");
}

}  // namespace

EngineCore::EngineCore(EngineParts parts, ActiveRequests::LeavesQueue leaves_queue,
                       const Clock& clock)
    : parts_(std::move(parts)), clock_(clock), requests_(std::move(leaves_queue), clock) {}

Status EngineCore::check(const GenerationRequest& request) const {
  const SamplingParams& sampling = request.sampling;
  PAGODA_RETURN_IF_ERROR(validate(sampling, limits().vocab_size));
  PAGODA_RETURN_IF_ERROR(check_prompt(request.prompt_token_ids, limits(), sampling.max_tokens));
  const int num_prompt_tokens = static_cast<int>(request.prompt_token_ids.size());
  if (parts_.scheduler->check(num_prompt_tokens, sampling) == Admission::kAdmitted)
    return ok_status();
  return invalid_argument(
      "[prompt] {} tokens and the answer's {} need more blocks than the KV cache has",
      num_prompt_tokens, sampling.max_tokens);
}

void EngineCore::add(RequestId id, GenerationRequest request, EventSink sink) {
  const std::uint64_t seed = request.sampling.seed.value_or(draw_seed(parts_.seed, id));
  Request taken = {.id = id, .generation = std::move(request), .seed = seed};
  requests_.add(taken, std::move(sink));
  parts_.scheduler->add(std::move(taken));
}

void EngineCore::cancel(RequestId id) {
  parts_.scheduler->cancel(id);
  deliver_ends();
}

void EngineCore::cancel_sample(RequestId id, int sample_index) {
  parts_.scheduler->cancel(id, sample_index);
  deliver_ends();
}

Result<bool> EngineCore::step() {
  if (!current_) {
    const Clock::TimePoint start = clock_.now();
    const Plan& plan = parts_.scheduler->plan();
    if (plan.empty()) return false;
    current_ = launch(plan, start);
  }
  draw();
  if (current_->status.ok() && parts_.runner->draws_ahead() && look_ahead())
    ++counters_.num_lookahead_steps;
  PAGODA_RETURN_IF_ERROR(end_step());
  return true;
}

EngineCore::LaunchedStep EngineCore::launch(const Plan& plan, Clock::TimePoint start) {
  requests_.start(plan);
  Status status = guarded([&] { return parts_.runner->forward(plan); });
  return {.plan = &plan, .start = start, .status = std::move(status)};
}

// Draws the rows that have waited for the step before; the current step cannot end without them.
void EngineCore::draw() {
  if (!current_->status.ok()) return;
  current_->status = guarded([&] { return parts_.runner->draw(*current_->plan); });
}

// Launches the step behind the current one, where there is one that need not wait.
bool EngineCore::look_ahead() {
  if (!parts_.runner->has_lookahead()) return false;
  const Clock::TimePoint start = clock_.now();
  const Plan* const plan = parts_.scheduler->plan_ahead();
  if (plan == nullptr) return false;
  next_ = launch(*plan, start);
  return true;
}

// Ends the current step: waits for its results and hands them on, or fails it.
Status EngineCore::end_step() {
  const Plan& plan = *current_->plan;
  const StepOutput* output = nullptr;
  Status status = current_->status;
  if (status.ok()) {
    status = guarded([&]() -> Status {
      PAGODA_ASSIGN_OR_RETURN(output, parts_.runner->sample(plan, requests_.wants_logits()));
      return ok_status();
    });
  }
  if (status.code() == StatusCode::kUnavailable) return status;
  const Clock::TimePoint start = std::max(current_->start, last_end_);
  const auto seconds = [&] { return seconds_between(start, clock_.now()); };
  const double computed_in_s = seconds();
  if (status.ok()) {
    // Rows that the host has drawn: the device need not wait for what else there is to do.
    if (!next_) look_ahead();
    parts_.scheduler->commit(plan, output->outcomes, computed_in_s);
    for (const RequestId id : requests_.deliver(plan, *output)) parts_.scheduler->cancel(id);
  } else {
    fail_steps(status);
  }
  count_step(plan, status.ok(), seconds());
  last_end_ = clock_.now();
  deliver_ends();
  current_ = std::exchange(next_, std::nullopt);
  return ok_status();
}

void EngineCore::fail_steps(const Status& status) {
  parts_.scheduler->fail(*current_->plan, status);
  if (next_) parts_.scheduler->fail(*next_->plan, status);
  next_.reset();
  parts_.runner->abandon();
}

void EngineCore::deliver_ends() {
  counters_.num_finished_requests += requests_.deliver_ends(parts_.scheduler->take_finished());
}

bool EngineCore::prefault() {
  return parts_.runner->prefault(parts_.pool->num_ever_held(), parts_.scheduler->has_prompts());
}

// Before a step waits for all of it at once.
void EngineCore::prefault_between_steps() {
  if (prefault_debt_s_ > 0) return;
  const Clock::TimePoint start = clock_.now();
  prefault();
  prefault_debt_s_ = seconds_between(start, clock_.now());
}

Status EngineCore::cancel_all() {
  for (const RequestId id : requests_.ids()) parts_.scheduler->cancel(id);
  while (current_) {
    draw();
    PAGODA_RETURN_IF_ERROR(end_step());
  }
  deliver_ends();
  return ok_status();
}

void EngineCore::close() {
  parts_.runner.reset();
  parts_.exec.reset();
}

void EngineCore::count_step(const Plan& plan, bool succeeded, double seconds) {
  ++counters_.num_steps;
  prefault_debt_s_ -= kPrefaultShare * seconds;
  for (const PlannedSequence& planned : plan.sequences) {
    const int prompt_left = planned.sequence->num_prompt_tokens() - planned.first_position;
    counters_.num_prompt_tokens +=
        static_cast<std::uint64_t>(std::clamp(prompt_left, 0, planned.num_new_tokens));
    if (plan.is_decode()) counters_.num_decode_kv_tokens += planned.context_len();
  }
  const SchedulerCounters& scheduler = parts_.scheduler->counters();
  const std::uint64_t num_without_token =
      scheduler.num_dropped_positions - counters_.num_dropped_positions +
      scheduler.num_deferred_draws - counters_.num_deferred_draws;
  counters_.num_dropped_positions = scheduler.num_dropped_positions;
  counters_.num_deferred_draws = scheduler.num_deferred_draws;
  const std::uint64_t generated = succeeded ? plan.num_samples - num_without_token : 0;
  counters_.num_generated_tokens += generated;
  (plan.is_decode() ? counters_.decode_s : counters_.prefill_s) += seconds;
  if (!plan.is_decode()) return;
  ++counters_.num_decode_steps;
  counters_.num_decode_tokens += generated;
}

EngineStats EngineCore::stats() const {
  EngineStats stats = counters_;
  stats.num_running = parts_.scheduler->num_running();
  stats.num_waiting = parts_.scheduler->num_waiting();
  stats.num_blocks = parts_.pool->num_blocks();
  stats.num_free_blocks = parts_.scheduler->num_free_blocks();
  const SchedulerCounters& scheduler = parts_.scheduler->counters();
  stats.num_preemptions = scheduler.num_preemptions;
  stats.num_priority_turns = scheduler.num_priority_turns;
  stats.num_prefix_queries = scheduler.num_prefix_queries;
  stats.num_prefix_hits = scheduler.num_told_prefix_hits;
  stats.num_block_copies = scheduler.num_block_copies;
  if (parts_.prefix_cache) {
    stats.num_prefix_evictions = parts_.prefix_cache->counters().num_evicted_blocks;
    stats.num_hashed_blocks = parts_.prefix_cache->counters().num_hashed_blocks;
  }
  stats.runner = parts_.runner->stats();
  return stats;
}

}  // namespace pagoda

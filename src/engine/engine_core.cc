#include "engine/engine_core.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "core/log.h"

namespace pagoda {
namespace {

// Paging in memory takes at most this share of the steps' time.
constexpr double kPrefaultShare = 0.5;

// Runs a part of a step. An exception from a backend's library fails only this step, because the
// library keeps no state from it.
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

void EngineCore::add(RequestId id, GenerationRequest request, EventSink sink) {
  const std::uint64_t seed = request.sampling.seed ? *request.sampling.seed : draw_seed();
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
    counters_.count_lookahead();
  PAGODA_RETURN_IF_ERROR(end_step());
  return true;
}

EngineCore::LaunchedStep EngineCore::launch(const Plan& plan, Clock::TimePoint start) {
  requests_.start(plan);
  Status status = guarded([&] { return parts_.runner->forward(plan); });
  return {.plan = &plan, .start = start, .status = std::move(status)};
}

// Draws the rows that have waited for tokens of the step before. The current step cannot end
// without them.
void EngineCore::draw() {
  if (!current_->status.ok()) return;
  current_->status = guarded([&] { return parts_.runner->draw(*current_->plan); });
}

// Launches the step after the current one. Returns false if there is none, or if it has to wait for
// the commit.
bool EngineCore::look_ahead() {
  if (!parts_.runner->has_lookahead()) return false;
  const Clock::TimePoint start = clock_.now();
  const Plan* const plan = parts_.scheduler->plan_ahead();
  if (plan == nullptr) return false;
  next_ = launch(*plan, start);
  return true;
}

// Ends the current step: waits for its results and delivers them, or fails it.
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
    // The host has drawn the last rows: launch the next step now, so that the device works during
    // commit and delivery.
    if (!next_) look_ahead();
    parts_.scheduler->commit(plan, output->outcomes, computed_in_s);
    for (const RequestId id : requests_.deliver(plan, *output)) parts_.scheduler->cancel(id);
  } else {
    fail_steps(status);
  }
  counters_.count_step(plan, status.ok(), seconds(), parts_.scheduler->counters());
  last_end_ = clock_.now();
  prefault_debt_s_ -= kPrefaultShare * seconds_between(start, last_end_);
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
  counters_.count_finished_requests(requests_.deliver_ends(parts_.scheduler->take_finished()));
}

bool EngineCore::prefault() {
  return parts_.runner->prefault(parts_.pool->num_ever_held(), parts_.scheduler->has_prompts());
}

// Prefaults a part of memory, so that no step has to wait for all of it at once.
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

void EngineCore::reset_prefix_cache(const std::string& cache_owner) {
  if (parts_.prefix_cache) parts_.prefix_cache->clear(cache_owner);
}

void EngineCore::store_cache() {
  if (!parts_.tier) return;
  const int num_stored = parts_.prefix_cache->store_all();
  log_info("[kv cache] prefix-cache-dir: {} blocks of the prefix cache were handed on", num_stored);
}

void EngineCore::close() {
  parts_.runner.reset();
  parts_.exec.reset();
}

}  // namespace pagoda

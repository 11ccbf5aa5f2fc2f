#include "engine/threaded_engine.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>
#include <utility>

#include "core/clock.h"
#include "sampling/rng.h"

namespace pagoda {

namespace {

constexpr std::uint64_t kHashOffset = 0xcbf29ce484222325ull;  // FNV-1a, over 32-bit words
constexpr std::uint64_t kHashPrime = 0x100000001b3ull;
constexpr std::chrono::milliseconds kBetweenLooks(1);  // for masks that a step can be planned with
constexpr double kPrefaultShare = 0.5;  // of steps' time, where a system is slow to give memory

std::uint64_t hash_row(std::uint64_t hash, std::span<const float> logits) {
  for (const float value : logits) hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * kHashPrime;
  return hash;
}

// Seeds of requests that bring none: the engine's seed and the request's number, mixed.
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

// Of a part of a step. What a backend's library throws is a failed step and no more: it has kept
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

Result<std::unique_ptr<Engine>> ThreadedEngine::start(
    std::function<Result<EngineParts>()> make_parts) {
  std::unique_ptr<ThreadedEngine> engine(new ThreadedEngine());
  std::promise<Status> made;
  std::future<Status> ready = made.get_future();
  engine->thread_ = std::thread([&made, self = engine.get(), make_parts = std::move(make_parts)] {
    Result<EngineParts> parts = make_parts();
    if (!parts.ok()) {
      made.set_value(parts.status());
      return;
    }
    self->parts_ = *std::move(parts);
    self->publish_stats();
    made.set_value(ok_status());
    self->run();
  });
  PAGODA_RETURN_IF_ERROR(ready.get());
  return std::unique_ptr<Engine>(std::move(engine));
}

ThreadedEngine::~ThreadedEngine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    work_.notify_one();
  }
  thread_.join();
}

Status ThreadedEngine::check_room(const QueueDemand& demand) const {
  const std::lock_guard lock(mutex_);
  return check_room_locked(demand);
}

Status ThreadedEngine::check_room_locked(const QueueDemand& demand) const {
  if (!stats_.healthy) return unavailable("[engine] it has failed and takes no new requests");
  if (draining_ || stopping_)
    return unavailable("[engine] it is shutting down and takes no new requests");
  const int max_queue = limits().max_queue;
  if (demand.num_requests > max_queue) {
    return invalid_argument(
        "[engine] expected at most {} prompts, as many as the queue holds, got {}", max_queue,
        demand.num_requests);
  }
  if (demand.num_bytes > kMaxQueueBytes) {
    return invalid_argument(
        "[engine] expected prompts and samples of at most {} MB, as much as the queue holds, got "
        "{}",
        kMaxQueueBytes >> 20, demand.num_bytes >> 20);
  }
  QueueDemand queued = queued_;
  queued += demand;
  if (queued.num_requests > max_queue)
    return resource_exhausted("[engine] the queue of {} requests is full", max_queue);
  if (queued.num_bytes > kMaxQueueBytes)
    return resource_exhausted("[engine] the queue's {} MB are full", kMaxQueueBytes >> 20);
  return ok_status();
}

Result<RequestId> ThreadedEngine::submit(GenerationRequest request, EventSink sink) {
  PAGODA_RETURN_IF_ERROR(validate(request.sampling, limits().vocab_size));
  PAGODA_RETURN_IF_ERROR(
      check_prompt(request.prompt_token_ids, limits(), request.sampling.max_tokens));
  const int num_prompt_tokens = static_cast<int>(request.prompt_token_ids.size());
  if (parts_.scheduler->check(num_prompt_tokens, request.sampling) == Admission::kNeverFits) {
    return invalid_argument(
        "[prompt] {} tokens and the answer's {} need more blocks than the KV cache has",
        num_prompt_tokens, request.sampling.max_tokens);
  }
  const QueueDemand demand = QueueDemand::of(request);
  const std::lock_guard lock(mutex_);
  PAGODA_RETURN_IF_ERROR(check_room_locked(demand));
  const RequestId id = next_id_++;
  Submission submission = {
      .sink = std::move(sink), .demand = demand, .hash_logits = request.hash_logits};
  submission.request = {.id = id,
                        .prompt_token_ids = std::move(request.prompt_token_ids),
                        .seed = request.sampling.seed.value_or(draw_seed(parts_.seed, id)),
                        .priority = request.priority,
                        .cache_salt = std::move(request.cache_salt),
                        .mask_source = std::move(request.mask_source)};
  submission.request.params = std::move(request.sampling);
  num_submitted_ += submission.request.params.n;
  queued_ += demand;
  submissions_.push_back(std::move(submission));
  work_.notify_one();
  return id;
}

void ThreadedEngine::cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  if (!stats_.healthy) return;
  cancellations_.push_back({.id = id});
  work_.notify_one();
}

void ThreadedEngine::cancel_sample(RequestId id, int sample_index) {
  const std::lock_guard lock(mutex_);
  if (!stats_.healthy) return;
  cancellations_.push_back({.id = id, .sample_index = sample_index});
  work_.notify_one();
}

EngineStats ThreadedEngine::stats() const {
  const std::lock_guard lock(mutex_);
  EngineStats stats = stats_;
  stats.num_waiting += num_submitted_;
  stats.num_waiting_requests = queued_.num_requests;
  return stats;
}

void ThreadedEngine::drain(double deadline_s) {
  std::unique_lock lock(mutex_);
  draining_ = true;
  const auto done = [this] {
    return submissions_.empty() && stats_.num_running + stats_.num_waiting == 0;
  };
  if (idle_.wait_for(lock, std::chrono::duration<double>(deadline_s), done)) return;
  stopping_ = true;
  work_.notify_one();
  idle_.wait(lock, done);
}

void ThreadedEngine::run() {
  try {
    serve();
  } catch (const std::exception& error) {
    // The bookkeeping may be half done: nothing that it says is worth another step.
    die(unavailable("[engine] it has failed: {}", error.what()));
  }
  // What belongs to this thread ends on it.
  parts_.runner.reset();
  parts_.exec.reset();
}

void ThreadedEngine::serve() {
  while (wait_for_work()) {
    take_commands();
    step();
    if (!counters_.healthy) return;
    publish_stats();
    prefault_between_steps();
  }
  cancel_everything();
}

bool ThreadedEngine::wait_for_work() {
  std::unique_lock lock(mutex_);
  const auto has_work = [this] {
    return stopping_ || !submissions_.empty() || !cancellations_.empty() ||
           !parts_.scheduler->idle();
  };
  // Rests: the next request need not wait for memory that can be had now.
  for (bool has_more = true; has_more && !has_work();) {
    lock.unlock();
    has_more = prefault();
    lock.lock();
  }
  work_.wait(lock, has_work);
  taken_submissions_.swap(submissions_);
  taken_cancellations_.swap(cancellations_);
  // Counted here already, so that nobody who looks between this and the step sees them nowhere.
  stats_.num_waiting += std::exchange(num_submitted_, 0);
  return !stopping_;
}

bool ThreadedEngine::prefault() {
  return parts_.runner->prefault(parts_.pool->num_ever_held(), parts_.scheduler->has_prompts());
}

// Before a step waits for all of it at once.
void ThreadedEngine::prefault_between_steps() {
  if (prefault_debt_s_ > 0) return;
  const Clock::TimePoint start = Clock::system().now();
  prefault();
  prefault_debt_s_ = seconds_between(start, Clock::system().now());
}

void ThreadedEngine::take_commands() {
  for (Submission& submission : taken_submissions_) admit(std::move(submission));
  taken_submissions_.clear();
  for (const Cancellation& cancellation : taken_cancellations_) {
    if (cancellation.sample_index) {
      parts_.scheduler->cancel_sample(cancellation.id, *cancellation.sample_index);
    } else {
      parts_.scheduler->cancel(cancellation.id);
    }
  }
  taken_cancellations_.clear();
  deliver_finished();
}

void ThreadedEngine::admit(Submission submission) {
  const SamplingParams& params = submission.request.params;
  ActiveRequest request = {.sink = std::exchange(submission.sink, nullptr),
                           .num_unfinished = params.n,
                           .is_finished = std::vector<bool>(params.n),
                           .demand = submission.demand};
  if (submission.hash_logits) {
    request.logits_hashes.assign(params.n, kHashOffset);
    ++num_hashed_;
  }
  if (params.prompt_logprobs) {
    request.prompt_logprobs.reserve(submission.request.prompt_token_ids.size());
    request.prompt_logprobs.emplace_back();  // nothing predicts the first token
  }
  active_.emplace(submission.request.id, std::move(request));
  parts_.scheduler->add(submission.request);
}

void ThreadedEngine::step() {
  if (!current_) {
    const Clock::TimePoint start = Clock::system().now();
    const Plan& plan = parts_.scheduler->plan();
    if (plan.empty()) return wait_for_masks();
    current_ = launch(plan, start);
  }
  draw();
  if (current_->status.ok() && parts_.runner->draws_ahead() && look_ahead())
    ++counters_.num_lookahead_steps;
  end_step();
}

// Whatever runs awaits its mask. Whoever makes masks does not know who waits, so look again soon.
void ThreadedEngine::wait_for_masks() {
  if (parts_.scheduler->idle()) return;
  std::unique_lock lock(mutex_);
  work_.wait_for(lock, kBetweenLooks,
                 [this] { return stopping_ || !submissions_.empty() || !cancellations_.empty(); });
}

ThreadedEngine::LaunchedStep ThreadedEngine::launch(const Plan& plan, Clock::TimePoint start) {
  note_starts(plan);
  return {.plan = &plan, .start = start, .status = guarded([&] {
                                           return parts_.runner->forward(plan);
                                         })};
}

// The rows that have waited for the step before; the current step cannot end without them.
void ThreadedEngine::draw() {
  if (!current_->status.ok()) return;
  current_->status = guarded([&] { return parts_.runner->draw(*current_->plan); });
}

// Launches the step behind the current one, where there is one that need not wait.
bool ThreadedEngine::look_ahead() {
  if (!parts_.runner->has_lookahead()) return false;
  const Clock::TimePoint start = Clock::system().now();
  const Plan* const plan = parts_.scheduler->plan_ahead();
  if (plan == nullptr) return false;
  next_ = launch(*plan, start);
  return true;
}

// Of the current step: its results, for which it waits, or its failure.
void ThreadedEngine::end_step() {
  const Plan& plan = *current_->plan;
  const StepOutput* output = nullptr;
  Status status = current_->status;
  if (status.ok()) {
    status = guarded([&]() -> Status {
      PAGODA_ASSIGN_OR_RETURN(output, parts_.runner->sample(plan, num_hashed_ > 0));
      return ok_status();
    });
  }
  if (status.code() == StatusCode::kUnavailable) return die(status);
  const Clock::TimePoint start = std::max(current_->start, last_end_);
  const auto seconds = [&] { return seconds_between(start, Clock::system().now()); };
  const double computed_in_s = seconds();
  if (status.ok()) {
    // Rows that the host has drawn: the device need not wait for what else there is to do.
    if (!next_) look_ahead();
    parts_.scheduler->commit(plan, output->outcomes, computed_in_s);
    deliver(plan, *output);
  } else {
    fail_steps(status);
  }
  count_step(plan, status.ok(), seconds());
  last_end_ = Clock::system().now();
  deliver_finished();
  current_ = std::exchange(next_, std::nullopt);
}

void ThreadedEngine::fail_steps(const Status& status) {
  parts_.scheduler->fail(*current_->plan, status);
  if (next_) parts_.scheduler->fail(*next_->plan, status);
  next_.reset();
  parts_.runner->abandon();
}

// A request starts with a part of its prompt. The log tells who is first in which order: ids grow
// with arrival.
void ThreadedEngine::note_starts(const Plan& plan) {
  for (std::size_t i = plan.num_decodes; i < plan.sequences.size(); ++i) {
    const Sequence& sequence = *plan.sequences[i].sequence;
    ActiveRequest& request = active_.at(sequence.request_id());
    if (std::exchange(request.has_started, true)) continue;
    leave_queue(request);
    spdlog::debug("[engine] request {} of priority {} starts", sequence.request_id(),
                  sequence.priority());
  }
}

void ThreadedEngine::leave_queue(const ActiveRequest& request) {
  const std::lock_guard lock(mutex_);
  queued_ -= request.demand;
}

void ThreadedEngine::count_step(const Plan& plan, bool succeeded, double seconds) {
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

void ThreadedEngine::deliver(const Plan& plan, const StepOutput& output) {
  deliver_scores(plan, output);
  for (std::size_t i = 0; i < output.samples.size(); ++i) {
    if (!output.outcomes[i].is_deferred)
      deliver_token(*output.samples[i].sequence, output.outcomes[i], output.samples[i]);
  }
}

void ThreadedEngine::deliver_scores(const Plan& plan, const StepOutput& output) {
  for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
    const SequenceOutput& of_sequence = output.of_sequence[i];
    if (of_sequence.scored.empty() && of_sequence.score_error.ok()) continue;
    const RequestId id = plan.sequences[i].sequence->request_id();
    ActiveRequest& request = active_.at(id);
    for (const TokenLogprobs& score : of_sequence.scored)
      request.prompt_logprobs.emplace_back(score);
    if (of_sequence.score_error.ok()) continue;
    request.error = of_sequence.score_error;
    parts_.scheduler->cancel(id);
  }
}

// A token that its sequence has kept, with the sequence's end where the token ends it. A token that
// it has not kept (the row had an error, the request was cancelled meanwhile) shows nowhere.
void ThreadedEngine::deliver_token(const Sequence& sequence, const SampleOutcome& outcome,
                                   const SampleOutput& output) {
  ActiveRequest& request = active_.at(sequence.request_id());
  if (request.is_finished[sequence.sample_index()]) return;  // by the step before
  if (!request.logits_hashes.empty()) {
    std::uint64_t& hash = request.logits_hashes[sequence.sample_index()];
    hash = hash_row(hash, output.logits);
  }
  if (sequence.finished() && !ended_by_token(request, sequence)) return;
  if (!outcome.status.ok() || !request.error.ok()) return;
  OutputEvent event = {.token_ids = {outcome.token_id}};
  if (output.logprobs) event.logprobs.push_back(*output.logprobs);
  send(request, sequence, std::move(event));
}

bool ThreadedEngine::ended_by_token(const ActiveRequest& request, const Sequence& sequence) {
  const FinishReason reason = sequence.finish_reason();
  return request.error.ok() && sequence.num_output_tokens() > 0 &&
         (reason == FinishReason::kStop || reason == FinishReason::kLength);
}

void ThreadedEngine::deliver_finished() {
  for (const std::unique_ptr<Sequence>& sequence : parts_.scheduler->take_finished()) {
    const auto found = active_.find(sequence->request_id());
    ActiveRequest& request = found->second;
    if (!ended_by_token(request, *sequence)) send(request, *sequence, {});
    if (--request.num_unfinished > 0) continue;
    if (!request.logits_hashes.empty()) --num_hashed_;
    if (!request.has_started) leave_queue(request);
    active_.erase(found);
    ++counters_.num_finished_requests;
  }
}

void ThreadedEngine::send(ActiveRequest& request, const Sequence& sequence, OutputEvent event) {
  event.sample_index = sequence.sample_index();
  event.finish_reason = request.error.ok() ? sequence.finish_reason() : FinishReason::kError;
  event.error = request.error.ok() ? sequence.error() : request.error;
  event.stop_token_id = sequence.stop_token_id();
  if (sequence.finished() && !request.logits_hashes.empty())
    event.logits_hash = request.logits_hashes[sequence.sample_index()];
  if (sequence.scores_prompt()) event.prompt_logprobs = std::exchange(request.prompt_logprobs, {});
  event.num_cached_tokens = sequence.num_cached_tokens();
  event.time = Clock::system().now();
  if (event.finish_reason != FinishReason::kNone) request.is_finished[event.sample_index] = true;
  request.sink(std::move(event));
}

void ThreadedEngine::publish_stats() {
  EngineStats stats = counters_;
  const RunnerCounters& runner = parts_.runner->counters();
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
  stats.num_evaluations = parts_.exec->num_evaluations();
  const StepInputCounters& input = parts_.runner->input_counters();
  stats.num_contiguous_steps = input.num_contiguous_steps;
  stats.num_paged_steps = input.num_paged_steps;
  stats.num_step_words = input.num_words;
  stats.num_logits_rows = runner.num_logits_rows;
  stats.num_logits_rows_skipped = runner.num_logits_rows_skipped;
  stats.weight_bytes_per_step = parts_.runner->decoder().num_weight_bytes();
  stats.kv_bytes_per_token = parts_.runner->kv().layout().bytes_per_token();
  const std::lock_guard lock(mutex_);
  stats_ = stats;
  if (stats_.num_running + stats_.num_waiting == 0 && submissions_.empty()) idle_.notify_all();
}

void ThreadedEngine::cancel_everything() {
  take_commands();
  std::vector<RequestId> ids;
  for (const auto& [id, request] : active_) ids.push_back(id);
  for (const RequestId id : ids) parts_.scheduler->cancel(id);
  while (current_ && counters_.healthy) {
    draw();
    end_step();
  }
  deliver_finished();
  publish_stats();
}

void ThreadedEngine::die(const Status& reason) {
  spdlog::error("{}", reason.message());
  counters_.healthy = false;
  {
    const std::lock_guard lock(mutex_);
    // What was published last: the engine's parts may be half way through a step.
    stats_.healthy = false;
    stats_.num_running = stats_.num_waiting = 0;
    stats_.num_free_blocks = stats_.num_blocks;
    for (Submission& submission : submissions_) taken_submissions_.push_back(std::move(submission));
    submissions_.clear();
    cancellations_.clear();
    num_submitted_ = 0;
    queued_ = {.num_requests = 0};
    idle_.notify_all();
  }
  const auto fail = [&](const EventSink& sink, int sample_index) {
    sink({.sample_index = sample_index,
          .finish_reason = FinishReason::kError,
          .error = reason,
          .time = Clock::system().now()});
  };
  for (const auto& [id, request] : active_) {
    for (std::size_t i = 0; i < request.is_finished.size(); ++i) {
      if (!request.is_finished[i]) fail(request.sink, static_cast<int>(i));
    }
  }
  for (const Submission& submission : taken_submissions_) {
    for (int i = 0; submission.sink && i < submission.request.params.n; ++i)
      fail(submission.sink, i);
  }
  active_.clear();
  taken_submissions_.clear();
}

}  // namespace pagoda

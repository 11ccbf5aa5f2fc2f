#include "tests/support/fake_engine.h"

#include <algorithm>
#include <chrono>

namespace pagoda {
namespace {

Clock::TimePoint after(Clock::TimePoint time, double seconds) {
  return time + std::chrono::duration_cast<Clock::TimePoint::duration>(
                    std::chrono::duration<double>(seconds));
}

TokenLogprobs fake_logprobs(int token_id, int num_top, int vocab_size) {
  TokenLogprobs logprobs{
      .chosen = {token_id, FakeEngine::logprob_of(token_id)}, .rank = 1, .top = {}};
  for (int i = 0; i < num_top; ++i) {
    logprobs.top.push_back(
        {(token_id + i) % vocab_size, FakeEngine::logprob_of(token_id) - static_cast<float>(i)});
  }
  return logprobs;
}

}  // namespace

FakeEngine::FakeEngine(FakeEngineOptions options) : options_(std::move(options)) {
  stats_.num_blocks = 100;
  stats_.num_free_blocks = 100;
  thread_ = std::thread([this] { loop(); });
}

FakeEngine::~FakeEngine() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

float FakeEngine::logprob_of(int token_id) {
  return -0.25f - 0.125f * static_cast<float>(token_id % 8);
}

Status FakeEngine::check_room(const QueueDemand& demand) const {
  std::lock_guard lock(mutex_);
  return check_room_locked(demand);
}

Status FakeEngine::check_room_locked(const QueueDemand& demand) const {
  if (draining_ || !stats_.healthy)
    return unavailable("[engine] expected a running engine, got one that has ended");
  if (demand.num_requests > options_.limits.max_queue) {
    return invalid_argument("[engine] expected at most {} prompts, got {}",
                            options_.limits.max_queue, demand.num_requests);
  }
  if (static_cast<int>(running_.size()) + demand.num_requests > options_.limits.max_queue) {
    return resource_exhausted("[engine] expected at most {} requests, got one more",
                              options_.limits.max_queue);
  }
  return ok_status();
}

Result<RequestId> FakeEngine::submit(GenerationRequest request, EventSink sink) {
  if (request.pooling == Pooling::kNone)
    PAGODA_RETURN_IF_ERROR(validate(request.sampling, options_.limits.vocab_size));
  std::lock_guard lock(mutex_);
  PAGODA_RETURN_IF_ERROR(check_room_locked(QueueDemand::of(request)));
  last_request_ = request;
  Running running{
      .id = next_id_++, .request = std::move(request), .sink = std::move(sink), .samples = {}};
  const Clock::TimePoint now = Clock::system().now();
  running.started = now;
  for (int i = 0; i < running.request.sampling.n; ++i) {
    Sample sample{.reply = options_.reply(running.request, i), .due = {}};
    sample.due = after(now, sample.reply.prefill_s);
    running.samples.push_back(std::move(sample));
  }
  stats_.num_prompt_tokens += running.request.prompt_token_ids.size();
  running_.push_back(std::move(running));
  changed_.notify_all();
  return running_.back().id;
}

void FakeEngine::cancel(RequestId id) {
  cancel_sample(id, -1);
}

void FakeEngine::cancel_sample(RequestId id, int sample_index) {
  std::lock_guard lock(mutex_);
  for (Running& running : running_) {
    if (running.id != id) continue;
    for (std::size_t i = 0; i < running.samples.size(); ++i) {
      if (sample_index < 0 || static_cast<int>(i) == sample_index)
        running.samples[i].cancelled = true;
    }
  }
  changed_.notify_all();
}

EngineStats FakeEngine::stats() const {
  std::lock_guard lock(mutex_);
  EngineStats stats = stats_;
  stats.num_running = static_cast<int>(running_.size());
  stats.num_free_blocks -= stats.num_running;
  return stats;
}

void FakeEngine::drain(double deadline_s) {
  std::unique_lock lock(mutex_);
  draining_ = true;
  const auto none_left = [this] { return running_.empty(); };
  if (changed_.wait_for(lock, std::chrono::duration<double>(deadline_s), none_left)) return;
  for (Running& running : running_) {
    for (Sample& sample : running.samples) sample.cancelled = true;
  }
  changed_.notify_all();
  changed_.wait(lock, none_left);
}

void FakeEngine::set_healthy(bool healthy) {
  std::lock_guard lock(mutex_);
  stats_.healthy = healthy;
}

int FakeEngine::num_cancelled_samples() const {
  std::lock_guard lock(mutex_);
  return num_cancelled_samples_;
}

void FakeEngine::reset_prefix_cache(const std::string& cache_owner) {
  const std::lock_guard lock(mutex_);
  resets_.push_back(cache_owner);
}

std::vector<std::string> FakeEngine::resets() const {
  const std::lock_guard lock(mutex_);
  return resets_;
}

GenerationRequest FakeEngine::last_request() const {
  std::lock_guard lock(mutex_);
  return last_request_;
}

void FakeEngine::loop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const Clock::TimePoint next = step(Clock::system().now());
    if (running_.empty()) {
      changed_.notify_all();  // for drain()
      changed_.wait(lock, [this] { return stopping_ || !running_.empty(); });
    } else if (next > Clock::system().now()) {
      changed_.wait_until(lock, next);
    } else {
      lock.unlock();  // so that submit() and cancel() get it at a pace of zero
      std::this_thread::yield();
      lock.lock();
    }
  }
}

// Gives a token to every sample that is due. Returns when the next sample is due.
Clock::TimePoint FakeEngine::step(Clock::TimePoint now) {
  Clock::TimePoint next = Clock::TimePoint::max();
  ++stats_.num_steps;
  for (auto running = running_.begin(); running != running_.end();) {
    bool finished = true;
    for (std::size_t i = 0; i < running->samples.size(); ++i) {
      Sample& sample = running->samples[i];
      if (!sample.finished && (sample.cancelled || sample.due <= now))
        step_sample(*running, static_cast<int>(i), now);
      finished &= sample.finished;
      if (!sample.finished) next = std::min(next, sample.due);
    }
    if (finished) ++stats_.num_finished_requests;
    running = finished ? running_.erase(running) : std::next(running);
  }
  return next;
}

void FakeEngine::step_sample(Running& running, int sample_index, Clock::TimePoint now) {
  Sample& sample = running.samples[sample_index];
  const bool pools = running.request.pooling != Pooling::kNone;
  OutputEvent event;
  event.sample_index = sample_index;
  event.started = running.started;
  event.time = now;
  if (sample.cancelled) {
    ++num_cancelled_samples_;
    event.finish_reason = FinishReason::kCancelled;
  } else if (!sample.reply.error.ok() &&
             (pools || sample.num_tokens >= static_cast<int>(sample.reply.token_ids.size()))) {
    event.finish_reason = FinishReason::kError;
    event.error = sample.reply.error;
  } else if (pools) {
    event.finish_reason = FinishReason::kLength;
    event.embedding = sample.reply.embedding;
  } else {
    generate(running, sample, event);
  }
  sample.finished = event.finish_reason != FinishReason::kNone;
  sample.due = after(now, options_.token_s);
  running.sink(std::move(event));
}

// Generates the next token, and the log-probabilities that the request asks for.
void FakeEngine::generate(const Running& running, Sample& sample, OutputEvent& event) {
  const SamplingParams& sampling = running.request.sampling;
  const int token_id = next_token(running, sample);
  if (sample.num_tokens == 0 && sampling.prompt_logprobs) {
    for (const int id : running.request.prompt_token_ids) {
      event.prompt_logprobs.push_back(
          fake_logprobs(id, *sampling.prompt_logprobs, options_.limits.vocab_size));
    }
    event.prompt_logprobs.front().reset();
  }
  event.token_ids = {token_id};
  if (sampling.logprobs) {
    event.logprobs.push_back(
        fake_logprobs(token_id, *sampling.logprobs, options_.limits.vocab_size));
  }
  ++sample.num_tokens;
  ++stats_.num_generated_tokens;
  finish(running, sample, token_id, event);
}

// Returns the reply's tokens in order, then the end of sequence. While the end is not allowed, it
// repeats the reply.
int FakeEngine::next_token(const Running& running, const Sample& sample) const {
  const SamplingParams& sampling = running.request.sampling;
  const auto length = static_cast<int>(sample.reply.token_ids.size());
  if (sample.num_tokens < length) return sample.reply.token_ids[sample.num_tokens];
  const bool may_end = !sampling.ignore_eos && sample.num_tokens >= sampling.min_tokens;
  if (may_end || length == 0) return options_.eos_token_id;
  return sample.reply.token_ids[sample.num_tokens % length];
}

void FakeEngine::finish(const Running& running, const Sample& sample, int token_id,
                        OutputEvent& event) const {
  const SamplingParams& sampling = running.request.sampling;
  const auto& stop_ids = sampling.stop_token_ids;
  const bool is_stop_id = std::find(stop_ids.begin(), stop_ids.end(), token_id) != stop_ids.end();
  const bool is_eos = token_id == options_.eos_token_id && !sampling.ignore_eos;
  if ((is_stop_id || is_eos) && sample.num_tokens > sampling.min_tokens) {
    event.finish_reason = FinishReason::kStop;
    event.stop_token_id = token_id;
  } else if (sample.num_tokens >= sampling.max_tokens) {
    event.finish_reason = FinishReason::kLength;
  }
}

}  // namespace pagoda

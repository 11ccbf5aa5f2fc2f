#include "engine/active_requests.h"

#include <bit>
#include <cmath>
#include <utility>

#include "core/log.h"

namespace pagoda {
namespace {

constexpr std::uint64_t kHashOffset = 0xcbf29ce484222325ull;  // FNV-1a, over 32-bit words
constexpr std::uint64_t kHashPrime = 0x100000001b3ull;

std::uint64_t hash_row(std::uint64_t hash, std::span<const float> logits) {
  for (const float value : logits) hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * kHashPrime;
  return hash;
}

}  // namespace

void ActiveRequests::add(const Request& request, EventSink sink) {
  const GenerationRequest& generation = request.generation;
  const SamplingParams& params = generation.sampling;
  ActiveRequest active = {.sink = std::move(sink),
                          .num_unfinished = params.n,
                          .is_finished = std::vector<bool>(params.n),
                          .demand = QueueDemand::of(generation)};
  if (generation.hash_logits) {
    active.logits_hashes.assign(params.n, kHashOffset);
    ++num_hashed_;
  }
  if (params.prompt_logprobs) {
    active.prompt_logprobs.reserve(generation.prompt_token_ids.size());
    active.prompt_logprobs.emplace_back();  // nothing predicts the first token
  }
  requests_.emplace(request.id, std::move(active));
}

std::vector<RequestId> ActiveRequests::ids() const {
  std::vector<RequestId> ids;
  for (const auto& [id, request] : requests_) ids.push_back(id);
  return ids;
}

// Notes which requests start with this plan. Ids grow with arrival, so the log shows the requests'
// order.
void ActiveRequests::start(const Plan& plan) {
  for (std::size_t i = plan.num_decodes; i < plan.sequences.size(); ++i) {
    const Sequence& sequence = *plan.sequences[i].sequence;
    ActiveRequest& request = requests_.at(sequence.request_id());
    if (request.started) continue;
    request.started = clock_.now();
    leaves_queue_(request.demand);
    log_debug("[engine] request {} of priority {} starts", sequence.request_id(),
              sequence.priority());
  }
}

std::vector<RequestId> ActiveRequests::deliver(const Plan& plan, const StepOutput& output) {
  std::vector<RequestId> failed = take_prompt_rows(plan, output);
  for (std::size_t i = 0; i < output.samples.size(); ++i) {
    if (!output.outcomes[i].is_deferred) deliver_token(output.samples[i], output.outcomes[i]);
  }
  return failed;
}

std::vector<RequestId> ActiveRequests::take_prompt_rows(const Plan& plan,
                                                        const StepOutput& output) {
  std::vector<RequestId> failed;
  for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
    const SequenceOutput& of_sequence = output.of_sequence[i];
    const PlannedSequence& planned = plan.sequences[i];
    if (of_sequence.scored.empty() && of_sequence.score_error.ok() && of_sequence.pooled.empty())
      continue;
    const RequestId id = planned.sequence->request_id();
    ActiveRequest& request = requests_.at(id);
    for (const TokenLogprobs& score : of_sequence.scored)
      request.prompt_logprobs.emplace_back(score);
    Status status = of_sequence.score_error;
    if (status.ok()) status = add_pooled(of_sequence.pooled, planned.num_read_rows, request);
    if (status.ok()) continue;
    request.error = std::move(status);
    failed.push_back(id);
  }
  return failed;
}

// Adds rows to the sum of the steps before, one after another, so that the sizes of chunks do not
// change the result.
Status ActiveRequests::add_pooled(std::span<const float> rows, int num_rows,
                                  ActiveRequest& request) {
  if (num_rows == 0) return ok_status();
  const std::size_t hidden = rows.size() / num_rows;
  request.pooled_sum.resize(hidden);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!std::isfinite(rows[i]))
      return internal_error("[embedding] a hidden state is no finite number");
    request.pooled_sum[i % hidden] += rows[i];
  }
  return ok_status();
}

// Sends a token, and its sequence's end if the token ends it. Nothing is sent for a token that the
// sequence has not kept: its row had an error, or the request was cancelled meanwhile.
void ActiveRequests::deliver_token(const SampleOutput& output, const SampleOutcome& outcome) {
  const Sequence& sequence = *output.sequence;
  ActiveRequest& request = requests_.at(sequence.request_id());
  if (request.is_finished[sequence.sample_index()]) return;  // the step before has ended it
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

bool ActiveRequests::ended_by_token(const ActiveRequest& request, const Sequence& sequence) {
  const FinishReason reason = sequence.finish_reason();
  return request.error.ok() && sequence.num_output_tokens() > 0 &&
         (reason == FinishReason::kStop || reason == FinishReason::kLength);
}

int ActiveRequests::deliver_ends(std::span<const std::unique_ptr<Sequence>> finished) {
  int num_ended = 0;
  for (const std::unique_ptr<Sequence>& sequence : finished) {
    const auto found = requests_.find(sequence->request_id());
    ActiveRequest& request = found->second;
    if (!ended_by_token(request, *sequence)) send(request, *sequence, {});
    if (--request.num_unfinished > 0) continue;
    if (!request.logits_hashes.empty()) --num_hashed_;
    if (!request.started) leaves_queue_(request.demand);
    requests_.erase(found);
    ++num_ended;
  }
  return num_ended;
}

void ActiveRequests::send(ActiveRequest& request, const Sequence& sequence,
                          OutputEvent event) const {
  event.sample_index = sequence.sample_index();
  event.finish_reason = request.error.ok() ? sequence.finish_reason() : FinishReason::kError;
  event.error = request.error.ok() ? sequence.error() : request.error;
  event.stop_token_id = sequence.stop_token_id();
  if (sequence.finished() && !request.logits_hashes.empty())
    event.logits_hash = request.logits_hashes[sequence.sample_index()];
  if (sequence.pooling() != Pooling::kNone && event.finish_reason == FinishReason::kLength) {
    for (const double sum : request.pooled_sum)
      event.embedding.push_back(static_cast<float>(sum / sequence.rows_to_read().size()));
  }
  if (sequence.scores_prompt()) event.prompt_logprobs = std::exchange(request.prompt_logprobs, {});
  event.num_cached_tokens = sequence.num_cached_tokens();
  if (request.started) event.started = *request.started;
  event.time = clock_.now();
  if (event.finish_reason != FinishReason::kNone) request.is_finished[event.sample_index] = true;
  request.sink(std::move(event));
}

void ActiveRequests::fail_all(const Status& reason) {
  for (const auto& [id, request] : requests_) {
    for (std::size_t i = 0; i < request.is_finished.size(); ++i) {
      if (request.is_finished[i]) continue;
      request.sink({.sample_index = static_cast<int>(i),
                    .finish_reason = FinishReason::kError,
                    .error = reason,
                    .time = clock_.now()});
    }
  }
  requests_.clear();
  num_hashed_ = 0;
}

}  // namespace pagoda

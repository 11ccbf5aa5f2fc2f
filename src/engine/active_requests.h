// ActiveRequests: the requests between their admission and their last event. It turns the results
// of steps into events for the requests' sinks.
//
// Belongs to the engine thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "engine/engine.h"
#include "engine/step_runner.h"

namespace pagoda {

class ActiveRequests {
 public:
  // Called when a request leaves the queue: when it starts, or when it ends without having started.
  // The argument is the room that it took in the queue.
  using LeavesQueue = std::function<void(const QueueDemand&)>;

  ActiveRequests(LeavesQueue leaves_queue, const Clock& clock)
      : leaves_queue_(std::move(leaves_queue)), clock_(clock) {}

  void add(const Request& request, EventSink sink);
  // Returns whether any request asks for the hash of its logits. If so, the host reads the logits.
  bool wants_logits() const { return num_hashed_ > 0; }
  std::vector<RequestId> ids() const;

  // Notes the start of the requests whose first chunks are in the plan.
  void start(const Plan& plan);
  // Sends the results of a step, whose plan has been committed. Returns the requests that cannot go
  // on, because a row of their prompts could not be scored or pooled.
  std::vector<RequestId> deliver(const Plan& plan, const StepOutput& output);
  // Sends the last events of sequences that did not end with a token. Returns how many requests
  // have ended with these sequences.
  int deliver_ends(std::span<const std::unique_ptr<Sequence>> finished);
  // Ends every request with this error.
  void fail_all(const Status& reason);

 private:
  struct ActiveRequest {
    EventSink sink;
    int num_unfinished = 0;         // samples that have not ended
    std::vector<bool> is_finished;  // [n]
    QueueDemand demand;             // room in the queue that it takes while it waits
    std::optional<Clock::TimePoint> started;
    std::vector<std::optional<TokenLogprobs>> prompt_logprobs;  // moved into sample 0's first event
    std::vector<std::uint64_t> logits_hashes;                   // [n]; empty unless asked for
    std::vector<double> pooled_sum;  // [hidden]: sum of the rows so far, if it pools
    Status error;                    // the error that ends it; ok: none
  };

  std::vector<RequestId> take_prompt_rows(const Plan& plan, const StepOutput& output);
  static Status add_pooled(std::span<const float> rows, int num_rows, ActiveRequest& request);
  void deliver_token(const SampleOutput& output, const SampleOutcome& outcome);
  void send(ActiveRequest& request, const Sequence& sequence, OutputEvent event) const;
  static bool ended_by_token(const ActiveRequest& request, const Sequence& sequence);

  LeavesQueue leaves_queue_;
  const Clock& clock_;
  std::unordered_map<RequestId, ActiveRequest> requests_;
  int num_hashed_ = 0;  // requests that want their logits' hash
};

}  // namespace pagoda

// Engine: continuous batching on one thread. Requests come in through a queue, and their results go
// out as events.
//
// The loop follows nano-vllm: plan, forward and sample, commit. All public members are thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/clock.h"
#include "core/kv_format.h"
#include "core/status.h"
#include "engine/engine_stats.h"
#include "engine/request.h"
#include "kv/cache_groups.h"
#include "sampling/sampling_params.h"
#include "sampling/token_logprobs.h"
#include "tensor/exec.h"

namespace pagoda {

// Room that requests take in the queue until their first step starts. A request is a prompt with
// all its samples, which wait and start together.
struct QueueDemand {
  int num_requests = 1;
  std::int64_t num_bytes = 0;  // each sample keeps its prompt and about 1 KiB more

  static QueueDemand of(const GenerationRequest& request) {
    const auto num_tokens = static_cast<std::int64_t>(request.prompt_token_ids.size());
    return {.num_requests = 1,
            .num_bytes = request.sampling.n * (1024 + num_tokens * std::int64_t{sizeof(int)})};
  }
  QueueDemand& operator+=(const QueueDemand& other) {
    num_requests += other.num_requests;
    num_bytes += other.num_bytes;
    return *this;
  }
  QueueDemand& operator-=(const QueueDemand& other) {
    num_requests -= other.num_requests;
    num_bytes -= other.num_bytes;
    return *this;
  }
};
inline constexpr std::int64_t kMaxQueueBytes = 128 << 20;

// An event that a request's sink receives: new tokens of one of its samples, in order.
struct OutputEvent {
  int sample_index = 0;  // in [0, n)
  std::vector<int> token_ids;
  std::vector<TokenLogprobs> logprobs;  // one per token id, if SamplingParams::logprobs is set
  // Set in sample 0's first event if SamplingParams::prompt_logprobs is set: one per prompt token,
  // empty for the first token.
  std::vector<std::optional<TokenLogprobs>> prompt_logprobs;
  // Set in the only event of a request that pools: [hidden_size], not normalised. The finish_reason
  // of that event is kLength.
  std::vector<float> embedding;
  FinishReason finish_reason = FinishReason::kNone;
  // For kStop: the id that ended the sample, the last of token_ids.
  std::optional<int> stop_token_id;
  int num_cached_tokens = 0;  // prompt tokens that the prefix cache had, in whole blocks
  Status error;               // for kError
  Clock::TimePoint started;   // when the request's first step started
  Clock::TimePoint time;      // when the engine sent the event
  // Set in the last event if the request asks for it: a hash of the bits of every sampled row, in
  // order.
  std::uint64_t logits_hash = 0;
};

// Called on the engine's thread, so it only hands the event on and returns. The last event of each
// sample has a finish_reason. The sink is destroyed after the last event of the last sample.
using EventSink = std::function<void(OutputEvent)>;

// The KV cache as it was sized at the start.
struct KvCacheInfo {
  KvFormats formats;                // of the layers that are not skipped
  std::vector<int> skipped_layers;  // kept in bfloat16 instead
  int block_size = 1;               // tokens
  int num_blocks = 0;
  std::vector<int> group_windows = {0};  // of each cache group (kv/cache_groups.h)
  std::int64_t bytes_per_token = 0;      // in all layers together
  bool has_prefix_cache = false;

  // Returns how many sequences of num_tokens tokens fit. REQUIRES: num_tokens > 0.
  int num_sequences(int num_tokens) const {
    return num_blocks / CacheGroups(block_size, group_windows).most_held(num_tokens);
  }
};

struct EngineLimits {
  int max_model_len = 0;  // tokens of prompt and output together
  int max_num_seqs = 0;
  int max_num_batched_tokens = 0;
  int max_queue = 0;  // waiting requests, each counted once with all its samples
  int vocab_size = 0;
  bool has_head = true;  // false: only requests that pool are served
  Backend backend = Backend::kCpu;
  std::string arithmetic;  // Exec::arithmetic()
  KvCacheInfo kv_cache;
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual const EngineLimits& limits() const = 0;

  // Returns the status that submit() would give now for requests with this demand: kInvalidArgument
  // (more than the queue ever holds), kResourceExhausted (more than it has free now) or
  // kUnavailable. Callers check before they read a request's texts, and before they submit the
  // first of several prompts.
  virtual Status check_room(const QueueDemand& demand) const = 0;
  // Draws the seed that a request without one would get, for a caller that has to know it. The same
  // seed gives the same answer again, here or by another engine of this model and these options.
  virtual std::uint64_t draw_seed() = 0;
  // Checks the request and queues it. kInvalidArgument: an empty or over-long prompt, ids out of
  // range, a sampling value out of range, or more memory than the queue has. kResourceExhausted:
  // the queue is full. kUnavailable: the engine drains or has failed.
  virtual Result<RequestId> submit(GenerationRequest request, EventSink sink) = 0;
  // Frees the request's blocks within one step; its samples end with kCancelled. Unknown ids are
  // ignored.
  virtual void cancel(RequestId id) = 0;
  // Ends one sample because its text contains a stop string. Its last event has kCancelled.
  virtual void cancel_sample(RequestId id, int sample_index) = 0;

  virtual EngineStats stats() const = 0;

  // Drops an owner's blocks from the prefix cache, except those that running requests hold.
  // Requests that are submitted later find none of the dropped blocks. Blocks in --prefix-cache-dir
  // stay.
  virtual void reset_prefix_cache(const std::string& cache_owner) = 0;

  // Refuses new requests, and returns when the running ones have ended. At the deadline it cancels
  // those that still run.
  virtual void drain(double deadline_s) = 0;
};

}  // namespace pagoda

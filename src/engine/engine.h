// Engine: continuous batching behind two queues. Requests in, events out, one thread between.
//
// The loop follows nano-vllm's three lines: plan, forward and sample, commit. All public members
// are thread-safe.
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

// Room that requests take in the queue until their first tokens are computed. A request is a prompt
// with all its samples, which wait and start together.
struct QueueDemand {
  int num_requests = 1;
  std::int64_t num_bytes = 0;  // each sample keeps its prompt, and about 1 KiB besides

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
  std::vector<TokenLogprobs> logprobs;  // one a token id, where SamplingParams::logprobs asks
  // With a sample's first event, where SamplingParams::prompt_logprobs asks: one a prompt token,
  // the first one's empty.
  std::vector<std::optional<TokenLogprobs>> prompt_logprobs;
  // With the only event of a request that pools: [hidden_size], not normalised. Its finish_reason is
  // kLength.
  std::vector<float> embedding;
  FinishReason finish_reason = FinishReason::kNone;
  std::optional<int> stop_token_id;  // of kStop: the id that ended it; it is the last of token_ids
  int num_cached_tokens = 0;         // prompt tokens that the prefix cache had, in whole blocks
  Status error;                      // of kError
  Clock::TimePoint started;          // when a step first took the request out of the queue
  Clock::TimePoint time;             // when the engine sent it
  std::uint64_t logits_hash =
      0;  // at the end, where asked for: over the bits of every sampled row, in order
};

// Called on the engine's thread: hands the event on and returns. The last event of each sample has
// a finish_reason; after the last sample's, the sink is destroyed.
using EventSink = std::function<void(OutputEvent)>;

// The KV cache as it was sized at the start.
struct KvCacheInfo {
  KvFormats formats;                // of the layers that are not skipped
  std::vector<int> skipped_layers;  // in bfloat16 instead
  int block_size = 1;               // tokens
  int num_blocks = 0;
  std::vector<int> group_windows = {0};  // of each cache group (kv/cache_groups.h)
  std::int64_t bytes_per_token = 0;      // in all layers that hold it
  bool has_prefix_cache = false;

  // Returns how many sequences of so many tokens fit. REQUIRES: num_tokens > 0.
  int num_sequences(int num_tokens) const {
    return num_blocks / CacheGroups(block_size, group_windows).most_held(num_tokens);
  }
};

struct EngineLimits {
  int max_model_len = 0;  // tokens of prompt and output together
  int max_num_seqs = 0;
  int max_num_batched_tokens = 0;
  int max_queue = 0;  // requests that wait, whatever their samples
  int vocab_size = 0;
  bool has_head = true;  // else requests have to pool
  Backend backend = Backend::kCpu;
  std::string arithmetic;  // Exec's
  KvCacheInfo kv_cache;
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual const EngineLimits& limits() const = 0;

  // Answers as submit() would at this moment for requests that take so much of the queue:
  // kInvalidArgument (it never holds as much), kResourceExhausted (not now), kUnavailable. A caller
  // asks before it reads a request's texts, and before it queues a part of several prompts.
  virtual Status check_room(const QueueDemand& demand) const = 0;
  // Draws the seed that a request without one would get, for a caller that has to know it. That
  // seed gives the same answer again, here or by another engine of this model and these options.
  virtual std::uint64_t draw_seed() = 0;
  // Checks the request and queues it. kInvalidArgument: an empty or over-long prompt, ids out of
  // range, a sampling value out of range, or more memory than the queue has. kResourceExhausted:
  // the queue is full. kUnavailable: draining, or dead.
  virtual Result<RequestId> submit(GenerationRequest request, EventSink sink) = 0;
  // Frees the request's blocks within one step; its samples end with kCancelled. Unknown ids are
  // ignored.
  virtual void cancel(RequestId id) = 0;
  // Ends one sample, whose text has met a stop string; its last event has kCancelled.
  virtual void cancel_sample(RequestId id, int sample_index) = 0;

  virtual EngineStats stats() const = 0;

  // Forgets what the prefix cache holds of an owner's requests for none that runs: those that are
  // submitted later find nothing of it in memory. Blocks of a --prefix-cache-dir stay there.
  virtual void reset_prefix_cache(const std::string& cache_owner) = 0;

  // Refuses new requests and returns when the running ones are done, or at the deadline, when the
  // rest is cancelled.
  virtual void drain(double deadline_s) = 0;
};

}  // namespace pagoda

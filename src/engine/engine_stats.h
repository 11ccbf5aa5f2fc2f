// EngineStats: what an engine has done and holds, for /metrics and bench.
#pragma once

#include <array>
#include <cstdint>

#include "kv/block_tier.h"
#include "tensor/exec.h"

namespace pagoda {

// Counters and facts of the StepRunner; counters only grow.
struct RunnerStats {
  ExecCounters exec;
  // Steps in which every sequence lies in consecutive blocks, and all other steps.
  std::uint64_t num_contiguous_steps = 0;
  std::uint64_t num_paged_steps = 0;
  std::uint64_t num_step_words = 0;           // 4-byte words that describe steps to the device
  std::uint64_t num_logits_rows = 0;          // rows for which logits were computed
  std::uint64_t num_logits_rows_skipped = 0;  // tokens for which no logits were needed
  std::int64_t weight_bytes_per_step = 0;     // that each decode step reads, without experts
  std::int64_t expert_bytes_per_token = 0;    // of the experts that a token chooses
  // Bytes of experts that decode steps have read, once a step. Where the host does not see the
  // choices, as if no two sequences of a step had chosen the same expert.
  std::uint64_t num_decode_expert_bytes = 0;
  std::int64_t kv_bytes_per_token = 0;
  std::uint64_t num_decode_kv_bytes = 0;  // keys and values that decode steps have read
};

// Bucket bounds of the histogram of steps by their number of tokens, as in vLLM. A step counts at
// the first bound that is not below its number of tokens, or in one more bucket after the last
// bound.
inline constexpr std::array<int, 15> kStepTokenBounds = {
    1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};

// A snapshot for /metrics and bench; counters only grow.
struct EngineStats {
  bool healthy = true;
  int num_running = 0;
  int num_waiting = 0;           // sequences: samples of waiting requests, and preempted ones
  int num_waiting_requests = 0;  // requests that have not started
  int num_blocks = 0;
  int num_free_blocks = 0;
  std::uint64_t num_steps = 0;
  // Steps, among num_steps, that were launched before the tokens of the step before were read.
  std::uint64_t num_lookahead_steps = 0;
  std::uint64_t num_dropped_positions = 0;  // computed ahead for sequences that had ended
  std::uint64_t num_deferred_draws = 0;     // because masks were not ready in time
  std::uint64_t num_prompt_tokens = 0;      // computed
  std::uint64_t num_generated_tokens = 0;
  // Counts steps by the sum of the prompt tokens computed and the tokens generated.
  std::array<std::uint64_t, kStepTokenBounds.size() + 1> num_steps_by_tokens{};
  std::uint64_t num_finished_requests = 0;
  std::uint64_t num_preemptions = 0;
  std::uint64_t num_priority_turns = 0;
  std::uint64_t num_prefix_queries = 0;    // prompt tokens looked up in the prefix cache
  std::uint64_t num_prefix_hits = 0;       // of those, tokens that were found, in whole blocks
  std::uint64_t num_prefix_evictions = 0;  // blocks
  std::uint64_t num_hashed_blocks = 0;     // for the prefix cache
  std::uint64_t num_block_copies = 0;      // of shared blocks, before they are written
  double prefill_s = 0;                    // in steps that computed prompt tokens
  double decode_s = 0;                     // in steps without prompt tokens
  std::uint64_t num_decode_steps = 0;      // steps without prompt tokens
  std::uint64_t num_decode_tokens = 0;     // tokens that decode steps generated
  BlockTierCounters tier;
  RunnerStats runner;
};

}  // namespace pagoda

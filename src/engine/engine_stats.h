// EngineStats: what an engine has done and holds, for /metrics and bench.
#pragma once

#include <array>
#include <cstdint>

#include "kv/block_tier.h"
#include "tensor/exec.h"

namespace pagoda {

// The counters and facts of the runner of the steps; counters only grow.
struct RunnerStats {
  ExecCounters exec;
  // Steps whose sequences lie in consecutive blocks, all of them, and the others.
  std::uint64_t num_contiguous_steps = 0;
  std::uint64_t num_paged_steps = 0;
  std::uint64_t num_step_words = 0;           // of 4 bytes, written to describe steps to the device
  std::uint64_t num_logits_rows = 0;          // that went through the last projection
  std::uint64_t num_logits_rows_skipped = 0;  // tokens whose logits were not wanted
  std::int64_t weight_bytes_per_step = 0;     // that a decode step reads
  std::int64_t kv_bytes_per_token = 0;
  std::uint64_t num_decode_kv_bytes = 0;  // of keys and values that decode steps have read
};

// Bounds of the counts of steps by their tokens, vLLM's: a step counts at the first that is not
// below its tokens, or behind the last.
inline constexpr std::array<int, 15> kStepTokenBounds = {
    1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};

// A snapshot for /metrics and bench; counters only grow.
struct EngineStats {
  bool healthy = true;
  int num_running = 0;
  int num_waiting = 0;           // sequences: samples of requests that wait, and preempted ones
  int num_waiting_requests = 0;  // that have not started
  int num_blocks = 0;
  int num_free_blocks = 0;
  std::uint64_t num_steps = 0;
  std::uint64_t num_lookahead_steps =
      0;  // of those, started before the last one's tokens were read
  std::uint64_t num_dropped_positions = 0;  // computed so for sequences that had ended
  std::uint64_t num_deferred_draws = 0;     // their masks were not there in time
  std::uint64_t num_prompt_tokens = 0;      // computed
  std::uint64_t num_generated_tokens = 0;
  // Counts steps by the prompt tokens that each computed and the tokens that came of it, together.
  std::array<std::uint64_t, kStepTokenBounds.size() + 1> num_steps_by_tokens{};
  std::uint64_t num_finished_requests = 0;
  std::uint64_t num_preemptions = 0;
  std::uint64_t num_priority_turns = 0;
  std::uint64_t num_prefix_queries = 0;    // prompt tokens that asked the prefix cache
  std::uint64_t num_prefix_hits = 0;       // of those, tokens that it had, in whole blocks
  std::uint64_t num_prefix_evictions = 0;  // blocks
  std::uint64_t num_hashed_blocks = 0;     // for the prefix cache
  std::uint64_t num_block_copies = 0;      // of shared blocks, before they are written
  double prefill_s = 0;                    // in steps that computed prompt tokens
  double decode_s = 0;                     // in the others
  std::uint64_t num_decode_steps = 0;      // those others
  std::uint64_t num_decode_tokens = 0;     // that they generated
  BlockTierCounters tier;
  RunnerStats runner;
};

}  // namespace pagoda

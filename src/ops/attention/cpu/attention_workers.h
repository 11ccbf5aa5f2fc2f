// The cpu attention's work for a thread, by the kind of keys and values. Each kind is a file that
// Highway compiles for every target. Apart, so that they are compiled side by side: no other file
// takes as long.
//
// A thread brings scratch_floats() of `scratch`, and reads and writes what the call, its items and
// `scratch` name.
#pragma once

#include <cstdint>
#include <span>

#include "ops/attention/cpu/attention_items.h"
#include "ops/attention/cpu/attention_scratch.h"

namespace pagoda::cpu {

struct AttentionWorkers {
  // Returns the floats that a thread's worker takes.
  std::int64_t (*scratch_floats)(const AttentionCall& call, const AttentionPlan::Counts& counts);
  // Computes items until the queue has none left.
  void (*attend)(const AttentionCall& call, const AttentionPlan::Counts& counts,
                 AttentionQueue& queue, int thread, AttentionScratch scratch);
  // Merges what the items of splits have left in the call's partials.
  void (*merge)(const AttentionCall& call, const AttentionPlan::Counts& counts,
                std::span<const AttentionItem> splits, AttentionScratch scratch);
};

// Returns the functions for keys and values that are both of float32, both of float16, or decoded
// to floats. They are those of the best target that Highway may choose.
AttentionWorkers float_workers();
// Returns those for keys and values of bfloat16.
AttentionWorkers bf16_workers();
// Returns those for keys and values that are codes.
AttentionWorkers code_workers();

}  // namespace pagoda::cpu

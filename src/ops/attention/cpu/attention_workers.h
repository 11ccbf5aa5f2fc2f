// The work of a thread of the cpu attention, for each kind of keys and values. Each kind is a file
// that Highway compiles for every target. These files take longest to compile, so they are separate
// and compile in parallel.
//
// A thread passes `scratch` of scratch_floats() floats. It reads and writes only the memory that
// the call, its items and `scratch` refer to.
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
  // Merges the softmaxes that are in the call's partials for `splits`, and writes the output.
  void (*merge)(const AttentionCall& call, const AttentionPlan::Counts& counts,
                std::span<const AttentionItem> splits, AttentionScratch scratch);
};

// Returns the functions for keys and values that are both float32, both float16, or decoded to
// floats. They are compiled for the best target that Highway may choose.
AttentionWorkers float_workers();
// Returns the functions for keys and values of bfloat16.
AttentionWorkers bf16_workers();
// Returns the functions for keys and values that are codes.
AttentionWorkers code_workers();

}  // namespace pagoda::cpu

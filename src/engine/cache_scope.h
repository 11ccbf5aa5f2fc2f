// The disk below the prefix cache, as an engine needs it: its folder, and the scope of its blocks.
//
// A block's bytes are a function of its tokens and of its scope. The scope has the checkpoint's
// files, how keys and values lie, where they are computed and with which options that change bits.
// It also has the bytes that a fixed prompt leaves in the cache. So a build whose arithmetic
// differs finds nothing of another one's, and developers need not count versions.
#pragma once

#include <memory>

#include "core/sha256.h"
#include "core/status.h"
#include "engine/engine_options.h"
#include "engine/scheduler.h"
#include "engine/step_runner.h"
#include "kv/block_files.h"
#include "kv/block_memory.h"
#include "kv/block_tier.h"
#include "kv/kv_layout.h"
#include "tensor/exec.h"
#include "weights/checkpoint.h"

namespace pagoda {

// Opens the folder in options.prefix_cache_dir; null where that is empty. kInvalidArgument: it cannot be had, or
// with options that rule a tier out.
Result<std::unique_ptr<BlockFiles>> open_tier_files(const EngineOptions& options);

// The parts that compute the fixed prompt, before any request does.
struct CacheScopeParts {
  Exec& exec;
  StepRunner& runner;
  BlockPool& pool;
  const BlockMemory& memory;
};

// Reads all of the checkpoint's files, on as many threads as there are cores, and computes the fixed
// prompt. Errors: a file that cannot be read, and the step's.
Result<Sha256Digest> cache_scope(const Checkpoint& checkpoint, const KvLayout& layout,
                                 const CacheScopeParts& parts,
                                 const SchedulerOptions& scheduler_options, int vocab_size);

// Starts the tier over the files.
std::unique_ptr<BlockTier> make_tier(const EngineOptions& options, const KvLayout& layout,
                                     const Sha256Digest& scope, BlockMemory memory,
                                     std::unique_ptr<BlockFiles> files);

}  // namespace pagoda

// The disk tier below the prefix cache: opens its folder, and computes the scope of its blocks.
//
// A block's bytes are a function of its tokens and of its scope. The scope is a digest of the
// checkpoint's files, the layout and formats of keys and values, the backend, and the options that
// change bits. It also covers the bytes that a fixed prompt leaves in the cache. So a build with
// another arithmetic finds no blocks of this one, and no version number has to be raised.
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

// Opens the folder in options.prefix_cache_dir; null if that option is empty. kInvalidArgument: the
// folder cannot be opened, or other options exclude a tier.
Result<std::unique_ptr<BlockFiles>> open_tier_files(const EngineOptions& options);

// The engine's parts that compute the fixed prompt, before any request runs.
struct CacheScopeParts {
  Exec& exec;
  StepRunner& runner;
  BlockPool& pool;
  const BlockMemory& memory;
};

// Reads all of the checkpoint's files, on as many threads as there are cores, and computes the
// fixed prompt. Returns the scope. Errors: those of reading a file, and of a step.
Result<Sha256Digest> cache_scope(const Checkpoint& checkpoint, const KvLayout& layout,
                                 const CacheScopeParts& parts,
                                 const SchedulerOptions& scheduler_options, int vocab_size);

// Starts the disk tier that keeps its blocks in these files.
std::unique_ptr<BlockTier> make_tier(const EngineOptions& options, const KvLayout& layout,
                                     const Sha256Digest& scope, BlockMemory memory,
                                     std::unique_ptr<BlockFiles> files);

}  // namespace pagoda

// kv_copy_blocks: copies the beginnings of blocks into other blocks, before a step's layers. There
// are two reasons: several sequences share a block that one is about to write (copy on write), or a
// new sequence goes on from a cached block's beginning.
#pragma once

#include "batch/kv_view.h"
#include "batch/step_batch.h"
#include "ops/dispatch.h"

namespace pagoda {

// Copies keys[destination, :n] = keys[source, :n] and the same of values, scales with them, for each (source,
// destination, n) of batch.block_copies; the destination's other entries are undefined after it. No
// block is a destination twice, or both source and destination; 0 <= n <= block_size. Bits are
// copied as they are. The returned view has the same memory and orders the copies before later
// reads and writes, as kv_write's does: hand it back to the store.
KvView kv_copy_blocks(Exec& exec, const KvView& view, const StepBatch& batch);

PAGODA_DECLARE_BODIES(KvView kv_copy_blocks(Exec& exec, const KvView& view, const StepBatch& batch))

}  // namespace pagoda

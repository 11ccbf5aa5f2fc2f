// kv_copy_blocks: copies the beginnings of blocks into other blocks, before a step's layers. There
// are two reasons: copy on write of a block that several sequences share, or a new sequence that
// continues the beginning of a cached block.
#pragma once

#include "batch/kv_view.h"
#include "batch/step_batch.h"
#include "ops/dispatch.h"

namespace pagoda {

// Copies keys[source, :n] to keys[destination, :n] for each (source, destination, n) of
// batch.block_copies, likewise values, and the scales of both. The destination's other entries are
// undefined afterwards. No block is a destination twice, or both source and destination; 0 <= n <=
// block_size. Bits are copied unchanged. The returned view has the same memory and orders the
// copies before later reads and writes, like that of kv_write: hand it back to the store.
KvView kv_copy_blocks(Exec& exec, const KvView& view, const StepBatch& batch);

PAGODA_DECLARE_BODIES(KvView kv_copy_blocks(Exec& exec, const KvView& view, const StepBatch& batch))

}  // namespace pagoda

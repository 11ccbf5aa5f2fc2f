// kv_write: stores the step's keys and values in the paged cache (Kwon et al., PagedAttention,
// 2023, arXiv:2309.06180).
#pragma once

#include "batch/kv_view.h"
#include "batch/step_batch.h"
#include "ops/dispatch.h"

namespace pagoda {

// Writes keys[slot] = k[t], values[slot] = v[t] for slot = slot_mapping[t]; -1 writes nothing.
//   k, v  [tokens, num_kv_heads, head_dim]; the last extent contiguous, the others at any stride;
//         rounded to the view's type (nearest even), or rotated and coded as quant/kv_int8.h and
//         quant/kv_int4.h define it, bit for bit
// Writes in place. The returned view has the same memory and is the graph's edge that orders this
// write before later reads: read from it, and hand it back to the store. No two tokens of a step
// share a slot.
KvView kv_write(Exec& exec, const KvView& view, const Tensor& k, const Tensor& v,
                const StepBatch& batch);

PAGODA_DECLARE_BODIES(KvView kv_write(Exec& exec, const KvView& view, const Tensor& k,
                                      const Tensor& v, const StepBatch& batch))

}  // namespace pagoda

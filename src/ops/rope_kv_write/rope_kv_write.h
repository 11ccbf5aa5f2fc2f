// rope_kv_write: the steps between the joined product of queries, keys and values and attention.
// They are norms of queries and keys if a model has them, the rotation, and the write to the cache.
#pragma once

#include "batch/kv_view.h"
#include "batch/step_batch.h"
#include "ops/dispatch.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/rope/rope.h"
#include "tensor/tensor.h"

namespace pagoda {

struct RopeKvWriteArgs {
  int num_heads = 0;  // of queries
  RmsNormArgs norm;   // if there are norms
  RopeArgs rope;
  Tensor query_angles;  // like `angles`, which they replace for queries, or undefined
  Tensor key_offset;    // [num_kv_heads, head_dim] float32, subtracted from keys; or undefined
  Tensor v_norm;        // [head_dim] float32, the norm of values; or undefined
  bool keys_are_values = false;  // joined has no values: they are its keys before norm and rotation
};

struct RopeKvWriteResult {
  Tensor q;     // [tokens, num_heads, head_dim], contiguous
  KvView view;  // as kv_write returns it
};

// Computes q = rope(rms_norm(joined's q, q_norm)), k = rope(rms_norm(joined's k, k_norm)) minus the
// offset, v = rms_norm(joined's v, v_norm), and kv_write(view, k, v). Saves a write and a read of
// the keys. If it is one kernel, it also saves two launches, and those of the norms.
//   joined          [tokens, (num_heads + 2 * num_kv_heads) * head_dim], contiguous: q, k, v;
//                   num_kv_heads fewer heads if keys_are_values: q, k
//   q_norm, k_norm  [head_dim] float32, or both undefined: no norms
//   angles          [tokens, 2, pairs] float32, as rope() takes them
// Reads slot_mapping of the step, as kv_write does. For a token whose slot is -1, only q is
// computed.
RopeKvWriteResult rope_kv_write(Exec& exec, const Tensor& joined, const Tensor& q_norm,
                                const Tensor& k_norm, const Tensor& angles, const KvView& view,
                                const StepBatch& batch, const RopeKvWriteArgs& args);

PAGODA_DECLARE_BODIES(RopeKvWriteResult rope_kv_write(
    Exec& exec, const Tensor& joined, const Tensor& q_norm, const Tensor& k_norm,
    const Tensor& angles, const KvView& view, const StepBatch& batch, const RopeKvWriteArgs& args))

}  // namespace pagoda

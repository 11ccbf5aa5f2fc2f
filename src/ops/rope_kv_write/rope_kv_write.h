// rope_kv_write: what lies between the joined product of queries, keys and values and attention:
// norms of queries and keys where a model has them, the rotation, and the write to the cache.
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
  RmsNormArgs norm;   // where there are norms
  RopeArgs rope;
  Tensor query_angles;  // as angles, or undefined: those that rotate queries in their place
  Tensor key_offset;    // [num_kv_heads, head_dim] float32, or undefined: taken from rotated keys
  Tensor v_norm;        // [head_dim] float32, or undefined: of values
  bool keys_are_values =
      false;  // joined has no values: they are its keys, neither normed nor rotated
};

struct RopeKvWriteResult {
  Tensor q;     // [tokens, num_heads, head_dim], contiguous
  KvView view;  // as kv_write returns it
};

// Computes q = rope(rms_norm(joined's q, q_norm)), k = rope(rms_norm(joined's k, k_norm)) less the
// offset, v = rms_norm(joined's v, v_norm), and kv_write(view, k, v). Saves a write and a read of the
// keys, and where it is one kernel, two launches and those of what norms cost.
//   joined          [tokens, (num_heads + 2 * num_kv_heads) * head_dim], contiguous: q, k, v
//   q_norm, k_norm  [head_dim] float32, or both undefined: no norms
//   angles          [tokens, 2, pairs] float32, as rope() takes them
// Reads slot_mapping of the step, as kv_write does: where that is -1, only q is computed.
RopeKvWriteResult rope_kv_write(Exec& exec, const Tensor& joined, const Tensor& q_norm,
                                const Tensor& k_norm, const Tensor& angles, const KvView& view,
                                const StepBatch& batch, const RopeKvWriteArgs& args);

PAGODA_DECLARE_BODIES(RopeKvWriteResult rope_kv_write(
    Exec& exec, const Tensor& joined, const Tensor& q_norm, const Tensor& k_norm,
    const Tensor& angles, const KvView& view, const StepBatch& batch, const RopeKvWriteArgs& args))

}  // namespace pagoda

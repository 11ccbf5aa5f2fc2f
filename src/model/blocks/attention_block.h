// AttentionBlock: projections, positions, cache and attention of one layer.
#pragma once

#include "batch/step_batch.h"
#include "kv/kv_store.h"
#include "model/blocks/projection.h"
#include "model/family.h"
#include "model/model_config.h"

namespace pagoda {

struct AttentionBlock {
  Projection qkv;     // [(num_heads + 2 * num_kv_heads) * head_dim, hidden]
  Tensor q_norm;      // [head_dim], or undefined
  Tensor k_norm;      // [head_dim], or undefined
  Projection output;  // [hidden, num_heads * head_dim]
  int layer = 0;      // the cache's
  int window = 0;     // positions; 0: full attention

  // x [tokens, hidden] -> [tokens, hidden]; writes the step's keys and values into `kv`.
  //   angles  [tokens, 2, head_dim / 2], of rope_angles
  Tensor apply(Exec& exec, const ModelConfig& config, const Tensor& angles, const Tensor& x,
               const StepBatch& batch, KvStore& kv) const;

 private:
  struct QueriesAndKeys {
    Tensor q;  // [tokens, num_heads, head_dim]
    Tensor k;  // [tokens, num_kv_heads, head_dim]
  };
  // Normed where the family does so, and turned: both at once where they lie side by side.
  //   joined  [tokens, (num_heads + 2 * num_kv_heads) * head_dim]
  QueriesAndKeys turn(Exec& exec, const ModelConfig& config, const Tensor& joined,
                      const Tensor& angles) const;
};

Result<AttentionBlock> load_attention_block(Exec& exec, const Checkpoint& checkpoint,
                                            const ModelConfig& config, const Family& family,
                                            int layer);

}  // namespace pagoda

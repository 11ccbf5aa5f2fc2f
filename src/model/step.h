// Step: what the blocks of a forward pass compute with.
#pragma once

#include <span>

#include "batch/step_batch.h"
#include "kv/kv_store.h"
#include "model/model_config.h"
#include "tensor/exec.h"

namespace pagoda {

// Lives as long as one forward pass.
struct Step {
  Exec& exec;
  const ModelConfig& config;
  const StepBatch& batch;
  KvStore& kv;                           // blocks rebind its layers
  std::span<const Tensor> angles;        // one a rope table: [tokens, 2, pairs], of rope_angles
  std::span<const Tensor> query_angles;  // the same of queries alone; empty: `angles` serve them
};

}  // namespace pagoda

// Step: the inputs that all blocks of a forward pass share.
#pragma once

#include <span>

#include "batch/step_batch.h"
#include "kv/kv_store.h"
#include "model/model_config.h"
#include "tensor/exec.h"

namespace pagoda {

// Exists during one forward pass.
struct Step {
  Exec& exec;
  const ModelConfig& config;
  const StepBatch& batch;
  KvStore& kv;                           // blocks rebind its layers
  std::span<const Tensor> angles;        // one per rope table: [tokens, 2, pairs], from rope_angles
  std::span<const Tensor> query_angles;  // the same for queries; empty: queries use `angles`
};

}  // namespace pagoda

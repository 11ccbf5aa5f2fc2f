// BlockSource: all that is needed to load a block of a layer.
#pragma once

#include "core/kv_format.h"
#include "model/blocks/block_spec.h"
#include "model/model_config.h"
#include "tensor/exec.h"
#include "weights/checkpoint.h"

namespace pagoda {

// Exists while one layer is loaded.
struct BlockSource {
  Exec& exec;  // where the weights are packed
  const Checkpoint& checkpoint;
  const ModelConfig& config;
  const BlockSpec& spec;                      // the layer's
  KvFormat key_format = KvFormat::kBFloat16;  // of the layer's cache
  int layer = 0;
};

}  // namespace pagoda

// BlockSource: what a block of a layer is loaded from.
#pragma once

#include "core/kv_format.h"
#include "model/blocks/block_spec.h"
#include "model/model_config.h"
#include "tensor/exec.h"
#include "weights/checkpoint.h"

namespace pagoda {

// Lives as long as the loading of one layer.
struct BlockSource {
  Exec& exec;  // where the weights are packed
  const Checkpoint& checkpoint;
  const ModelConfig& config;
  const BlockSpec& spec;                      // the layer's
  KvFormat key_format = KvFormat::kBFloat16;  // of the layer's cache
  int layer = 0;
};

}  // namespace pagoda

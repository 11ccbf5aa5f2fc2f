// Reads a checkpoint's ScoreFormat: the tensor "score.weight", the activation in a folder's
// config.json, and the rerank template of a GGUF file.
#pragma once

#include <optional>

#include "core/status.h"
#include "model/model_config.h"
#include "serving/pooling/score_format.h"
#include "weights/checkpoint.h"

namespace pagoda {

// Returns nothing if the checkpoint has no score head. Errors: kUnsupported for a head with another
// number of classes or an unknown activation; kDataLoss for a head whose shape contradicts the
// config.
Result<std::optional<ScoreFormat>> read_score_format(const Checkpoint& checkpoint,
                                                     const ModelConfig& config);

}  // namespace pagoda

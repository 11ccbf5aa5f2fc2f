// Reads a checkpoint's ScoreFormat: the tensor "score.weight", a folder's config.json for what is done
// to its logit, a GGUF file's template for rerankers.
#pragma once

#include <optional>

#include "core/status.h"
#include "model/model_config.h"
#include "serving/score_format.h"
#include "weights/checkpoint.h"

namespace pagoda {

// Returns nothing for a checkpoint without such a head. Errors: a head with other classes, or an
// activation, that nothing here computes (kUnsupported); one of another shape than the config says
// (kDataLoss).
Result<std::optional<ScoreFormat>> read_score_format(const Checkpoint& checkpoint,
                                                     const ModelConfig& config);

}  // namespace pagoda

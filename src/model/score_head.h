// The head of a checkpoint that scores texts: a row of weights for each class of texts, which
// Hugging Face's ...ForSequenceClassification and GGUF files of rerankers have.
#pragma once

#include <vector>

#include "core/status.h"
#include "model/model_config.h"
#include "weights/checkpoint.h"

namespace pagoda {

struct ScoreHead {
  int num_classes = 0;
  std::vector<float> weights;  // [classes, hidden]
};

// Reads the tensor "score.weight". kDataLoss: it has another shape than the config says, or numbers
// that are not finite. REQUIRES: the config says that there is one.
Result<ScoreHead> read_score_head(const Checkpoint& checkpoint, const ModelConfig& config);

}  // namespace pagoda

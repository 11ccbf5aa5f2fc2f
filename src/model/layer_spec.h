// The tensors that a model's layers read from a checkpoint, as listed by the specs of their blocks.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/blocks/block_spec.h"
#include "model/blocks/expert_tensors.h"
#include "model/family.h"
#include "model/model_config.h"

namespace pagoda {

// REQUIRES: 0 <= layer < config.num_layers().
BlockSpec layer_spec(const Family& family, const ModelConfig& config, int layer);

// The use of a layer's tensor: a part of a projection or of experts, a vector, or nothing.
struct TensorPlace {
  int layer = 0;
  const ProjectionSpec* projection = nullptr;
  int part = 0;  // of the projection; -1: the joined matrix
  bool is_bias = false;
  const ExpertsSpec* experts = nullptr;
  ExpertPlace expert;  // if `experts` is set
  const VectorSpec* vector = nullptr;
  bool is_passed_over = false;  // the block's spec has it in passed_over
};

// The specs of all layers. Immutable.
class LayerSpecs {
 public:
  LayerSpecs(const Family& family, const ModelConfig& config);

  // Finds a tensor by its whole canonical name; nothing if no layer has it. The result's pointers
  // are valid as long as this object.
  std::optional<TensorPlace> find(std::string_view tensor) const;

 private:
  std::vector<BlockSpec> specs_;
  int num_draft_layers_ = 0;
};

}  // namespace pagoda

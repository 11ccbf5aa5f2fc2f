#include "model/hf/hf_experts.h"

#include <algorithm>

#include "model/config_limits.h"

namespace pagoda {

Result<ExpertsConfig> read_hf_experts(const JsonFields& fields, const HfExpertKeys& keys,
                                      ExpertsConfig experts) {
  const bool has_other = keys.other_num_experts != nullptr && fields.has(keys.other_num_experts);
  PAGODA_ASSIGN_OR_RETURN(
      experts.num_experts,
      fields.integer(has_other ? keys.other_num_experts : keys.num_experts, kExpertRange));
  const std::int64_t most_chosen = std::min(experts.num_experts, kMostChosenExperts);
  PAGODA_ASSIGN_OR_RETURN(experts.rule.num_chosen,
                          fields.integer(keys.num_chosen, {1, most_chosen}));
  PAGODA_ASSIGN_OR_RETURN(experts.intermediate_size,
                          fields.integer(keys.intermediate_size, kIntermediateRange));
  if (keys.is_normalised != nullptr) {
    PAGODA_ASSIGN_OR_RETURN(experts.rule.is_normalised,
                            fields.boolean_or(keys.is_normalised, false));
  }
  return experts;
}

void set_experts(const ExpertsConfig& experts, ModelConfig& config) {
  for (LayerConfig& layer : config.layers) layer.mlp = experts;
}

void set_experts(const ExpertsConfig& experts, const std::function<bool(int layer)>& is_sparse,
                 ModelConfig& config) {
  for (int i = 0; i < config.num_layers(); ++i) {
    if (is_sparse(i)) config.layers[i].mlp = experts;
  }
}

}  // namespace pagoda

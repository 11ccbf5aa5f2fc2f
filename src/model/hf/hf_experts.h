// Reads a mixture of experts from config.json. Families spell its keys in different ways.
#pragma once

#include <functional>

#include "core/status.h"
#include "model/hf/json_fields.h"
#include "model/model_config.h"

namespace pagoda {

// A family's spelling of keys; null: the family has no such key.
struct HfExpertKeys {
  const char* num_experts = "num_experts";
  const char* other_num_experts =
      "num_local_experts";  // is preferred: num_experts may be a default
  const char* num_chosen = "num_experts_per_tok";
  const char* intermediate_size = "moe_intermediate_size";  // of an expert
  const char* is_normalised = nullptr;
};

// Reads the sizes, and whether weights are normalised, if there is a key for that. `experts` has the
// family's values of what a config need not say. Errors name the key: a count beyond what ops take,
// more chosen experts than there are.
Result<ExpertsConfig> read_hf_experts(const JsonFields& fields, const HfExpertKeys& keys,
                                      ExpertsConfig experts);

// Sets the MLP of all layers.
void set_experts(const ExpertsConfig& experts, ModelConfig& config);
// Sets it where `is_sparse` is true.
void set_experts(const ExpertsConfig& experts, const std::function<bool(int layer)>& is_sparse,
                 ModelConfig& config);

}  // namespace pagoda

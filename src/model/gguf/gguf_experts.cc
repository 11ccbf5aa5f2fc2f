#include "model/gguf/gguf_experts.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "model/config_limits.h"
#include "model/family.h"

namespace pagoda {
namespace {

// Reads the gating function by its number in llama.cpp; 0 and absent: the architecture's.
Status read_gating(const ArchitectureKeys& keys, RouteRule& rule) {
  constexpr std::string_view kKey = "expert_gating_func";
  PAGODA_ASSIGN_OR_RETURN(const int number, keys.integer_or(kKey, {0, 1 << 20}, 0));
  constexpr Gating kGatings[] = {Gating::kSoftmax, Gating::kSigmoid, Gating::kSoftmaxOfChosen};
  if (number == 0) return ok_status();
  if (number > static_cast<int>(std::size(kGatings))) {
    return unsupported("[gguf] key {}: routing function {} is not supported; 1 to 3 are",
                       keys.name(kKey), number);
  }
  rule.gating = kGatings[number - 1];
  return ok_status();
}

Status read_rule(const Checkpoint& checkpoint, const ArchitectureKeys& keys, int num_experts,
                 RouteRule& rule) {
  const std::int64_t most_chosen = std::min(num_experts, kMostChosenExperts);
  PAGODA_ASSIGN_OR_RETURN(rule.num_chosen, keys.integer("expert_used_count", {1, most_chosen}));
  PAGODA_RETURN_IF_ERROR(read_gating(keys, rule));
  constexpr std::string_view kNorm = "expert_weights_norm";
  if (keys.has(kNorm)) {
    PAGODA_ASSIGN_OR_RETURN(rule.is_normalised, checkpoint.gguf()->boolean(keys.name(kNorm)));
  }
  PAGODA_ASSIGN_OR_RETURN(const double factor, keys.number_or("expert_weights_scale", {0, 1e6}, 0));
  if (factor != 0) rule.factor = static_cast<float>(factor);
  PAGODA_ASSIGN_OR_RETURN(rule.num_groups,
                          keys.integer_or("expert_group_count", {1, kMostExpertGroups}, 1));
  PAGODA_ASSIGN_OR_RETURN(
      rule.num_chosen_groups,
      keys.integer_or("expert_group_used_count", {1, rule.num_groups}, rule.num_groups));
  return ok_status();
}

// Returns the width of the layer's expert that all tokens share, 0 if there is none. Its tensor
// shows it: what files say of it in keys is not always so.
Result<int> shared_width(const Checkpoint& checkpoint, const std::string& module) {
  const std::string name = module + ".up_proj.weight";
  if (!checkpoint.has(name)) return 0;
  PAGODA_ASSIGN_OR_RETURN(const HostTensor tensor, checkpoint.tensor(name));
  const std::int64_t width = tensor.shape.rank() == 2 ? tensor.shape[0] : 0;
  if (width < kIntermediateRange.min || width > kIntermediateRange.max) {
    return data_loss("[gguf] tensor {}: expected a matrix, got {}", name, to_string(tensor.shape));
  }
  return static_cast<int>(width);
}

}  // namespace

Status read_gguf_experts(const Checkpoint& checkpoint, const ArchitectureKeys& keys,
                         ExpertsConfig experts, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(experts.num_experts, keys.integer("expert_count", kExpertRange));
  PAGODA_RETURN_IF_ERROR(read_rule(checkpoint, keys, experts.num_experts, experts.rule));
  PAGODA_ASSIGN_OR_RETURN(experts.intermediate_size,
                          keys.integer_or("expert_feed_forward_length", kIntermediateRange,
                                          config.layers.front().dense_mlp().intermediate_size));
  const ExpertNames& names = find_family(config.architecture)->experts;
  for (int i = 0; i < config.num_layers(); ++i) {
    const std::string prefix = layer_prefix(i);
    if (!checkpoint.has(prefix + std::string(names.router) + ".weight")) continue;
    PAGODA_ASSIGN_OR_RETURN(experts.shared_intermediate_size,
                            shared_width(checkpoint, prefix + std::string(names.shared)));
    config.layers[i].mlp = experts;
  }
  return ok_status();
}

}  // namespace pagoda

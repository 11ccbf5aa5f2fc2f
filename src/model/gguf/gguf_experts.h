// Reads a mixture of experts from GGUF keys.
#pragma once

#include <string_view>

#include "core/status.h"
#include "model/gguf/gguf_architecture_keys.h"
#include "model/model_config.h"
#include "weights/checkpoint.h"

namespace pagoda {

// The keys that most families with experts read (Family::gguf_keys). Those of shared experts only
// repeat what tensors show.
inline constexpr std::string_view kGgufExpertKeys[] = {
    "expert_count",        "expert_used_count",    "expert_feed_forward_length",
    "expert_shared_count", "expert_weights_scale", "expert_shared_feed_forward_length",
    "expert_weights_norm", "expert_gating_func"};

// Reads the sizes and the rule. `experts` has the architecture's values of what a file need not say:
// the gating function, and whether weights are normalised. The layers that have a router get the
// result. Errors name the key.
Status read_gguf_experts(const Checkpoint& checkpoint, const ArchitectureKeys& keys,
                         ExpertsConfig experts, ModelConfig& config);

}  // namespace pagoda

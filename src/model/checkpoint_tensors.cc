#include "model/checkpoint_tensors.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "model/blocks/expert_tensors.h"
#include "model/family.h"
#include "model/layer_spec.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

// Returns whether a tensor of experts is read: tensors with several matrices are preferred.
bool is_read(const Checkpoint& checkpoint, const TensorPlace& place) {
  const auto has = [&](const std::string& module) {
    return has_expert_tensor(checkpoint, module, place.is_bias);
  };
  const ExpertsSpec& spec = *place.experts;
  if (has(spec.joined)) return place.expert.part < 0;
  const std::vector<std::string>& stacked = spec.parts[place.expert.part].stacked;
  return std::ranges::any_of(stacked, has) == (place.expert.expert < 0);
}

// Returns whether a layer reads a tensor, or ignores it as transformers does. If a checkpoint has a
// joined matrix, the separate parts are not read.
bool is_known(const Checkpoint& checkpoint, const LayerSpecs& layers, std::string_view name) {
  const std::optional<TensorPlace> place = layers.find(name);
  if (place && place->experts != nullptr) return is_read(checkpoint, *place);
  if (!place || place->projection == nullptr) return place.has_value();
  return checkpoint.has(place->projection->joined + ".weight") == (place->part < 0);
}

bool is_per_layer_embedding(std::string_view name) {
  return name == "model.embed_tokens_per_layer.weight" ||
         name == "model.per_layer_model_projection.weight" ||
         name == "model.per_layer_projection_norm.weight";
}

bool is_read_once(std::string_view name, const Checkpoint& checkpoint) {
  // The last three are divisors of frequencies, which read_gguf_rope has applied already.
  return name == "model.embed_tokens.weight" || name == "model.norm.weight" ||
         name == "lm_head.weight" ||
         (checkpoint.gguf() != nullptr &&
          (name == "rope_freqs.weight" || name == "rope_factors_long.weight" ||
           name == "rope_factors_short.weight"));
}

}  // namespace

bool is_derived_tensor(std::string_view name) {
  return name == "model.rotary_emb.inv_freq" || name.ends_with(".self_attn.rotary_emb.inv_freq") ||
         name.ends_with(".attn_rot_embd.weight");
}

Status check_all_tensors_are_read(const Checkpoint& checkpoint, const ModelConfig& config) {
  const LayerSpecs layers(*find_family(config.architecture), config);
  for (const std::string& name : checkpoint.names()) {
    if (is_read_once(name, checkpoint) || is_derived_tensor(name)) continue;
    if (config.per_layer_width > 0 && is_per_layer_embedding(name)) continue;
    if (config.has_score_head && name == "score.weight") continue;
    if (is_known(checkpoint, layers, name)) continue;
    return unsupported(
        "[model] tensor {} is not supported: a {} of {} layers, as the config describes it, does "
        "not read it",
        printable(name), config.architecture, config.num_layers());
  }
  return ok_status();
}

}  // namespace pagoda

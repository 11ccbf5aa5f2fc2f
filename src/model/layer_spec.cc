#include "model/layer_spec.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>
#include <vector>

#include "model/blocks/per_layer_block.h"
#include "model/layer_blocks.h"

namespace pagoda {
namespace {

constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kBias = ".bias";

// Returns the number of the layer that a tensor belongs to; -1: none.
int layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "model.layers.";
  if (!name.starts_with(kPrefix)) return -1;
  int layer = -1;
  const char* const begin = name.data() + kPrefix.size();
  const auto [end, error] = std::from_chars(begin, name.data() + name.size(), layer);
  return error == std::errc() ? layer : -1;
}

// Finds a projection's part, or its joined matrix, by the name of a module.
std::optional<int> find_part(const ProjectionSpec& projection, std::string_view module) {
  if (module == projection.joined) return -1;
  const auto part = std::ranges::find(projection.parts, module, &ProjectionPart::name);
  if (part == projection.parts.end()) return std::nullopt;
  return static_cast<int>(part - projection.parts.begin());
}

std::optional<TensorPlace> find_in(const BlockSpec& spec, std::string_view module, bool is_bias) {
  for (const ProjectionSpec& projection : spec.projections) {
    const std::optional<int> part = find_part(projection, module);
    if (part && (projection.bias || !is_bias))
      return TensorPlace{.projection = &projection, .part = *part, .is_bias = is_bias};
  }
  for (const ExpertsSpec& experts : spec.experts) {
    const std::optional<ExpertPlace> expert = find_expert(experts, module);
    if (expert && (experts.has_bias || !is_bias))
      return TensorPlace{.is_bias = is_bias, .experts = &experts, .expert = *expert};
  }
  const auto vector = std::ranges::find(spec.vectors, module, &VectorSpec::name);
  if (vector != spec.vectors.end() && !is_bias) return TensorPlace{.vector = &*vector};
  if (std::ranges::find(spec.passed_over, module) == spec.passed_over.end()) return std::nullopt;
  return TensorPlace{.is_bias = is_bias, .is_passed_over = true};
}

// Finds a tensor whose name lacks the usual ".weight": some vectors of Hugging Face's, which GGUF's
// names end in ".weight" or ".bias", and the matrices of all experts.
std::optional<TensorPlace> find_unusual(const BlockSpec& spec, std::string_view tensor) {
  for (const VectorRole role :
       {VectorRole::kLayerFactor, VectorRole::kChoiceBias, VectorRole::kSinks,
        VectorRole::kRouterScale, VectorRole::kExpertScales}) {
    const VectorSpec* const vector = spec.vector(role);
    if (vector == nullptr || !tensor.starts_with(vector->name)) continue;
    const std::string_view ending = tensor.substr(vector->name.size());
    if (ending.empty() || (ending == kBias && role == VectorRole::kChoiceBias))
      return TensorPlace{.vector = vector};
  }
  for (const ExpertsSpec& experts : spec.experts) {
    const std::optional<ExpertPlace> expert = find_expert(experts, tensor);
    const bool is_bias = tensor.ends_with("_bias");
    if (expert && expert->expert < 0 && (experts.has_bias || !is_bias))
      return TensorPlace{.is_bias = is_bias, .experts = &experts, .expert = *expert};
  }
  return std::nullopt;
}

}  // namespace

LayerSpecs::LayerSpecs(const Family& family, const ModelConfig& config)
    : num_draft_layers_(config.num_draft_layers) {
  for (int i = 0; i < config.num_layers(); ++i) specs_.push_back(layer_spec(family, config, i));
}

std::optional<TensorPlace> LayerSpecs::find(std::string_view tensor) const {
  const int layer = layer_of(tensor);
  const int num_layers = static_cast<int>(specs_.size());
  if (layer >= num_layers && layer < num_layers + num_draft_layers_)
    return TensorPlace{.layer = layer, .is_passed_over = true};
  if (layer < 0 || layer >= num_layers) return std::nullopt;
  const BlockSpec& spec = specs_[layer];
  std::optional<TensorPlace> place;
  for (const std::string_view ending : {kWeight, kBias}) {
    if (!tensor.ends_with(ending)) continue;
    place = find_in(spec, tensor.substr(0, tensor.size() - ending.size()), ending == kBias);
  }
  if (!place) place = find_unusual(spec, tensor);
  if (place) place->layer = layer;
  return place;
}

BlockSpec layer_spec(const Family& family, const ModelConfig& config, int layer) {
  const auto spec_of = [&](const auto& block) { return block_spec(config, block, layer); };
  BlockSpec spec = std::visit(spec_of, config.layers[layer].mixer);
  spec.append(std::visit(spec_of, config.layers[layer].mlp));
  if (config.per_layer_width > 0) spec.append(per_layer_spec(config, layer));
  const auto add_vector = [&](VectorRole role, std::string_view name, std::int64_t dim) {
    if (!name.empty())
      spec.vectors.push_back(
          {.role = role, .name = layer_prefix(layer) + std::string(name), .dim = dim});
  };
  const LayerNormNames& norms = family.norms;
  add_vector(VectorRole::kAttentionNorm, norms.before_attention, config.hidden_size);
  add_vector(VectorRole::kAttentionDeltaNorm, norms.behind_attention, config.hidden_size);
  add_vector(VectorRole::kMlpNorm, norms.before_mlp, config.hidden_size);
  add_vector(VectorRole::kMlpDeltaNorm, norms.behind_mlp, config.hidden_size);
  if (config.per_layer_width > 0)
    add_vector(VectorRole::kPerLayerDeltaNorm, norms.behind_per_layer, config.hidden_size);
  add_vector(VectorRole::kLayerFactor, family.layer_factor, 1);
  return spec;
}

}  // namespace pagoda

#include "model/hf/hf_layers.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/json.h"
#include "model/config_limits.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

constexpr NumberRange kScalarRange{1e-6, 1e6};

Result<int> read_head_dim(const JsonFields& fields, int hidden_size, int num_heads) {
  if (fields.has("head_dim")) return fields.integer("head_dim", kHeadDimRange);
  if (hidden_size % num_heads != 0) {
    return invalid_argument(
        "[config] {}: expected hidden_size to be a multiple of {} heads, got {}", fields.where(),
        num_heads, hidden_size);
  }
  return hidden_size / num_heads;
}

// Reads layer_types: "full_attention" or "sliding_attention" for each layer.
Status read_layer_types(const JsonFields& fields, int window, ModelConfig& config) {
  const nlohmann::json& types = *fields.find("layer_types");
  if (!types.is_array() || types.size() != config.layers.size()) {
    return fields.wrong("layer_types", fmt::format("a list of {} layers", config.num_layers()));
  }
  for (int layer = 0; layer < config.num_layers(); ++layer) {
    const nlohmann::json& type = types[layer];
    if (type == "full_attention") continue;
    if (type != "sliding_attention") {
      return unsupported(
          "[config] {}: layer type {} is not supported; full_attention and "
          "sliding_attention are",
          fields.where(), printable(json_text(type), 40));
    }
    if (window == 0) {
      return invalid_argument(
          "[config] {}: layer_types has a sliding_attention, but sliding_window is off",
          fields.where());
    }
    config.layers[layer].attention().window = window;
  }
  return ok_status();
}

// Sets the window of all layers but every n-th.
Status read_pattern(const JsonFields& fields, const Family& family, int window,
                    ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const int pattern, fields.integer_or("sliding_window_pattern",
                                                               kLayerRange, family.window_pattern));
  for (int i = 0; i < config.num_layers(); ++i)
    config.layers[i].attention().window = (i + 1) % pattern == 0 ? 0 : window;
  return ok_status();
}

// Sets the window of the layers without a rotation, if use_sliding_window is true.
Status read_unrotated_windows(const JsonFields& fields, int window, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const bool use_window, fields.boolean_or("use_sliding_window", false));
  PAGODA_ASSIGN_OR_RETURN(const std::vector<bool> rotated,
                          read_rotated_layers(fields, config.num_layers()));
  for (int i = 0; use_window && i < config.num_layers(); ++i)
    config.layers[i].attention().window = rotated[i] ? 0 : window;
  return ok_status();
}

Status read_windows(const JsonFields& fields, const Family& family, ModelConfig& config) {
  if (family.windows == WindowRule::kNone) {
    return fields.has("layer_types") ? read_layer_types(fields, 0, config) : ok_status();
  }
  // transformers writes 0 if use_sliding_window is false.
  const IntegerRange range =
      family.windows == WindowRule::kByLayer ? IntegerRange{0, kPositionRange.max} : kPositionRange;
  PAGODA_ASSIGN_OR_RETURN(int window, fields.integer_or("sliding_window", range, 0));
  if (family.windows == WindowRule::kAllLayers && !fields.has("layer_types")) {
    for (LayerConfig& layer : config.layers) layer.attention().window = window;
    return ok_status();
  }
  if (family.windows == WindowRule::kByLayer) {
    PAGODA_ASSIGN_OR_RETURN(const bool use_window, fields.boolean_or("use_sliding_window", false));
    if (!use_window) window = 0;
  }
  if (fields.has("layer_types")) return read_layer_types(fields, window, config);
  if (family.windows == WindowRule::kPattern) return read_pattern(fields, family, window, config);
  if (family.windows == WindowRule::kUnrotated)
    return read_unrotated_windows(fields, window, config);
  PAGODA_ASSIGN_OR_RETURN(const int first, fields.integer("max_window_layers", {0, 1 << 20}));
  for (int layer = first; layer < config.num_layers(); ++layer)
    config.layers[layer].attention().window = window;
  return ok_status();
}

// Reads the scale of attention scores and their soft cap.
Status read_scores(const JsonFields& fields, const Family& family, AttentionConfig& layer) {
  layer.score_scale = default_score_scale(layer.head_dim);
  if (family.reads("query_pre_attn_scalar")) {
    PAGODA_ASSIGN_OR_RETURN(const double scalar,
                            fields.number("query_pre_attn_scalar", kScalarRange));
    layer.score_scale = static_cast<float>(1 / std::sqrt(scalar));
  }
  if (family.reads("attention_multiplier")) {
    PAGODA_ASSIGN_OR_RETURN(const double scale,
                            fields.number("attention_multiplier", kScalarRange));
    layer.score_scale = static_cast<float>(scale);
  }
  if (family.reads("attn_logit_softcapping")) {
    PAGODA_ASSIGN_OR_RETURN(const double cap,
                            fields.number_or("attn_logit_softcapping", {0, 1e6}, 0));
    layer.score_cap = static_cast<float>(cap);
  }
  return ok_status();
}

}  // namespace

// Reads which layers are rotated. no_rope_layers has a 0 for each layer that is not. Without that
// key, every no_rope_layer_interval-th layer is not rotated.
Result<std::vector<bool>> read_rotated_layers(const JsonFields& fields, int num_layers) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<std::int64_t> listed,
                          fields.integers("no_rope_layers", {0, 1}));
  std::vector<bool> rotated(num_layers);
  if (!listed.empty()) {
    if (listed.size() != rotated.size())
      return fields.wrong("no_rope_layers", fmt::format("a list of {} layers", num_layers));
    std::copy(listed.begin(), listed.end(), rotated.begin());
    return rotated;
  }
  PAGODA_ASSIGN_OR_RETURN(const int interval,
                          fields.integer("no_rope_layer_interval", kLayerRange));
  for (int i = 0; i < num_layers; ++i) rotated[i] = (i + 1) % interval != 0;
  return rotated;
}

// Reads the layers. They differ in their windows and in what depends on the windows.
Status read_layers(const JsonFields& fields, const Family& family, ModelConfig& config) {
  AttentionConfig layer = {.qk_norm = family.qk_norm};
  PAGODA_ASSIGN_OR_RETURN(const int num_layers, fields.integer("num_hidden_layers", kLayerRange));
  PAGODA_ASSIGN_OR_RETURN(layer.num_heads, fields.integer("num_attention_heads", kHeadRange));
  PAGODA_ASSIGN_OR_RETURN(layer.num_kv_heads,
                          fields.integer_or("num_key_value_heads", kHeadRange, layer.num_heads));
  PAGODA_ASSIGN_OR_RETURN(layer.head_dim,
                          read_head_dim(fields, config.hidden_size, layer.num_heads));
  PAGODA_ASSIGN_OR_RETURN(const int intermediate_size,
                          fields.integer("intermediate_size", kIntermediateRange));
  PAGODA_RETURN_IF_ERROR(read_scores(fields, family, layer));
  config.layers.assign(
      num_layers, {.mixer = layer, .mlp = DenseMlpConfig{.intermediate_size = intermediate_size}});
  return read_windows(fields, family, config);
}

}  // namespace pagoda

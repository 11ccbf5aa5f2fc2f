#include "model/hf_layers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "core/json.h"
#include "core/log.h"
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

// layer_types: "full_attention" or "sliding_attention" for each layer.
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

// Sets the window of the layers that have no rotation, where use_sliding_window says so.
Status read_unturned_windows(const JsonFields& fields, int window, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const bool use_window, fields.boolean_or("use_sliding_window", false));
  PAGODA_ASSIGN_OR_RETURN(const std::vector<bool> turned,
                          read_turned_layers(fields, config.num_layers()));
  for (int i = 0; use_window && i < config.num_layers(); ++i)
    config.layers[i].attention().window = turned[i] ? 0 : window;
  return ok_status();
}

Status read_windows(const JsonFields& fields, const Family& family, ModelConfig& config) {
  if (family.windows == WindowRule::kNone) {
    return fields.has("layer_types") ? read_layer_types(fields, 0, config) : ok_status();
  }
  PAGODA_ASSIGN_OR_RETURN(int window, fields.integer_or("sliding_window", kPositionRange, 0));
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
  if (family.windows == WindowRule::kUnturned) return read_unturned_windows(fields, window, config);
  PAGODA_ASSIGN_OR_RETURN(const int first, fields.integer("max_window_layers", {0, 1 << 20}));
  for (int layer = first; layer < config.num_layers(); ++layer)
    config.layers[layer].attention().window = window;
  return ok_status();
}

// Reads what queries and keys are multiplied by, and how their products are bent.
Status read_scores(const JsonFields& fields, const Family& family, AttentionConfig& layer) {
  layer.score_scale = family.leaves_scores ? 1 : default_score_scale(layer.head_dim);
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

// Reads the heads of layers that see all, as Gemma 4's first files have them.
Status read_global_heads(const JsonFields& fields, bool keys_are_values, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const int head_dim, fields.integer("global_head_dim", kHeadDimRange));
  int num_kv_heads = config.layers.front().attention().num_kv_heads;
  if (keys_are_values) {
    PAGODA_ASSIGN_OR_RETURN(
        num_kv_heads, fields.integer_or("num_global_key_value_heads", kHeadRange, num_kv_heads));
  }
  for (LayerConfig& each : config.layers) {
    AttentionConfig& layer = each.attention();
    if (layer.window > 0) continue;
    layer.head_dim = head_dim;
    layer.num_kv_heads = num_kv_heads;
  }
  return ok_status();
}

// Reads what per_layer_config says of one layer.
Status read_own_heads(const JsonFields& own, AttentionConfig& layer) {
  for (const auto& [key, value] : own.json().items()) {
    if (key == "head_dim" || key == "num_key_value_heads") continue;
    if (key == "skip" && value == nlohmann::json::array()) continue;
    return unsupported("[config] {}: {} is not supported; head_dim and num_key_value_heads are",
                       own.where(), printable(key, 60));
  }
  PAGODA_ASSIGN_OR_RETURN(layer.head_dim,
                          own.integer_or("head_dim", kHeadDimRange, layer.head_dim));
  PAGODA_ASSIGN_OR_RETURN(layer.num_kv_heads,
                          own.integer_or("num_key_value_heads", kHeadRange, layer.num_kv_heads));
  return ok_status();
}

// global_head_dim and num_global_key_value_heads say nothing beside per_layer_config.
void warn_of_idle_heads(const JsonFields& fields, const Family& family) {
  const auto defaults = parse_json(family.defaults);
  for (const char* key : {"global_head_dim", "num_global_key_value_heads"}) {
    if (!fields.has(key) || *fields.find(key) == defaults.value(key, nlohmann::json())) continue;
    log_warning("[config] {}: {} is ignored: per_layer_config stands beside it", fields.where(),
                key);
  }
}

// Reads per_layer_config: by a layer's number, what it has otherwise than the config says. This is how
// transformers writes Gemma 4's heads from version 5.24 on.
Status read_heads_by_layer(const JsonFields& fields, const Family& family, ModelConfig& config) {
  constexpr const char* kKey = "per_layer_config";
  warn_of_idle_heads(fields, family);
  if (!fields.has(kKey)) return ok_status();
  PAGODA_ASSIGN_OR_RETURN(const JsonFields by_layer, fields.object(kKey));
  for (const auto& [number, value] : by_layer.json().items()) {
    int layer = -1;
    const char* const end = number.data() + number.size();
    const auto parsed = std::from_chars(number.data(), end, layer);
    if (parsed.ec != std::errc() || parsed.ptr != end || layer < 0 ||
        layer >= config.num_layers()) {
      return invalid_argument("[config] {}: expected numbers of {} layers, got {}",
                              by_layer.where(), config.num_layers(), printable(number, 40));
    }
    PAGODA_ASSIGN_OR_RETURN(const JsonFields own, by_layer.object(number.c_str()));
    PAGODA_RETURN_IF_ERROR(read_own_heads(own, config.layers[layer].attention()));
  }
  for (const LayerConfig& each : config.layers) {
    const AttentionConfig& layer = each.attention();
    const AttentionConfig& first = config.first_attention(layer.window > 0);
    if (layer.head_dim == first.head_dim && layer.num_kv_heads == first.num_kv_heads) continue;
    return unsupported("[config] {}: {}: layers of one type with heads of several kinds",
                       fields.where(), kKey);
  }
  return ok_status();
}

// Reads the heads of layers that see all, where they are others than those of windows (Gemma 4). The
// last layer sees all, whatever the config says of it.
Status read_full_heads(const JsonFields& fields, const Family& family, ModelConfig& config) {
  if (!family.reads("global_head_dim")) return ok_status();
  config.layers.back().attention().window = 0;
  PAGODA_ASSIGN_OR_RETURN(const bool are_values, fields.boolean_or("attention_k_eq_v", false));
  for (LayerConfig& layer : config.layers)
    layer.attention().keys_are_values = are_values && layer.attention().window == 0;
  if (fields.json().contains("per_layer_config"))
    return read_heads_by_layer(fields, family, config);
  return read_global_heads(fields, are_values, config);
}

// Reads how many of the last layers read the cache of another one, and whether their MLPs are twice as
// wide.
Status read_shared_caches(const JsonFields& fields, const Family& family, ModelConfig& config) {
  if (!family.reads("num_kv_shared_layers")) return ok_status();
  PAGODA_ASSIGN_OR_RETURN(const int num_shared,
                          fields.integer_or("num_kv_shared_layers", {0, config.num_layers()}, 0));
  if (!share_caches(config, num_shared)) {
    return invalid_argument(
        "[config] {}: num_kv_shared_layers is {}, and layers before those lack a window's or a "
        "full "
        "one's",
        fields.where(), num_shared);
  }
  PAGODA_ASSIGN_OR_RETURN(const bool is_double, fields.boolean_or("use_double_wide_mlp", false));
  for (LayerConfig& layer : config.layers) {
    if (is_double && layer.attention().kv_source >= 0) layer.dense_mlp().intermediate_size *= 2;
  }
  return ok_status();
}

}  // namespace

// no_rope_layers has a 0 for each layer that is not turned; without it, that is every
// no_rope_layer_interval-th.
Result<std::vector<bool>> read_turned_layers(const JsonFields& fields, int num_layers) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<std::int64_t> listed,
                          fields.integers("no_rope_layers", {0, 1}));
  std::vector<bool> turned(num_layers);
  if (!listed.empty()) {
    if (listed.size() != turned.size())
      return fields.wrong("no_rope_layers", fmt::format("a list of {} layers", num_layers));
    std::copy(listed.begin(), listed.end(), turned.begin());
    return turned;
  }
  PAGODA_ASSIGN_OR_RETURN(const int interval,
                          fields.integer("no_rope_layer_interval", kLayerRange));
  for (int i = 0; i < num_layers; ++i) turned[i] = (i + 1) % interval != 0;
  return turned;
}

// All layers are alike but for their windows, and what goes with those.
Status read_layers(const JsonFields& fields, const Family& family, ModelConfig& config) {
  AttentionConfig layer = {.norms_values = family.norms_values, .qk_norm = family.qk_norm};
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
  PAGODA_RETURN_IF_ERROR(read_windows(fields, family, config));
  PAGODA_RETURN_IF_ERROR(read_full_heads(fields, family, config));
  return read_shared_caches(fields, family, config);
}

}  // namespace pagoda

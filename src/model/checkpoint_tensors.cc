#include "model/checkpoint_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "model/family.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

// Returns the names behind "model.layers.N." that a layer reads. The parts of a joined matrix are not
// read beside it. Those of keys and values are among them also where a layer reads another one's
// cache: checkpoints may have them, and transformers passes over them too.
std::vector<std::string> layer_tensors(const Checkpoint& checkpoint, const ModelConfig& config,
                                       const Family& family, int layer) {
  std::vector<std::string> names;
  const LayerConfig& shape = config.layers[layer];
  const LayerNormNames& norms = family.norms;
  for (const std::string_view norm :
       {norms.before_attention, norms.behind_attention, norms.before_mlp, norms.behind_mlp}) {
    if (!norm.empty()) names.push_back(std::string(norm) + ".weight");
  }
  const auto add = [&names](std::initializer_list<const char*> parts, bool has_bias) {
    for (const char* part : parts) {
      names.push_back(std::string(part) + ".weight");
      if (has_bias) names.push_back(std::string(part) + ".bias");
    }
  };
  const auto add_joined = [&](const char* joined, std::initializer_list<const char*> parts,
                              bool has_bias) {
    if (checkpoint.has(fmt::format("model.layers.{}.{}.weight", layer, joined))) {
      add({joined}, has_bias);
    } else {
      add(parts, has_bias);
    }
  };
  add_joined("self_attn.qkv_proj", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
             config.attention_bias);
  add({"self_attn.o_proj"}, config.attention_output_bias);
  add_joined("mlp.gate_up_proj", {"mlp.gate_proj", "mlp.up_proj"}, config.mlp_bias);
  add({"mlp.down_proj"}, config.mlp_bias);
  if (shape.qk_norm != QkNorm::kNone) add({"self_attn.q_norm", "self_attn.k_norm"}, false);
  if (shape.keys_are_values) std::erase(names, "self_attn.v_proj.weight");
  if (config.per_layer_width > 0) {
    add({"per_layer_input_gate", "per_layer_projection"}, false);
    names.push_back(std::string(norms.behind_per_layer) + ".weight");
  }
  if (!family.layer_factor.empty()) {
    names.emplace_back(family.layer_factor);
    names.push_back(std::string(family.layer_factor) + ".weight");
  }
  return names;
}

// A name behind "model.layers.N.".
struct NameInLayer {
  int layer = 0;
  std::string_view name;
};

// Nothing for a name that is not of a layer of the model.
std::optional<NameInLayer> name_in_layer(std::string_view name, int num_layers) {
  constexpr std::string_view kPrefix = "model.layers.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  int layer = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (error != std::errc() || layer < 0 || layer >= num_layers) return std::nullopt;
  name.remove_prefix(end - name.data());
  if (!name.starts_with('.')) return std::nullopt;
  return NameInLayer{.layer = layer, .name = name.substr(1)};
}

bool is_per_layer_embedding(std::string_view name) {
  return name == "model.embed_tokens_per_layer.weight" ||
         name == "model.per_layer_model_projection.weight" ||
         name == "model.per_layer_projection_norm.weight";
}

bool is_read_once(std::string_view name, const Checkpoint& checkpoint) {
  // The divisors of a GGUF file's rotation are in the config by now.
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
  std::vector<std::vector<std::string>> in_layers;
  const Family& family = *find_family(config.architecture);
  for (int i = 0; i < config.num_layers(); ++i)
    in_layers.push_back(layer_tensors(checkpoint, config, family, i));
  for (const std::string& name : checkpoint.names()) {
    if (is_read_once(name, checkpoint) || is_derived_tensor(name)) continue;
    if (config.per_layer_width > 0 && is_per_layer_embedding(name)) continue;
    if (config.has_score_head && name == "score.weight") continue;
    if (const auto part = name_in_layer(name, config.num_layers())) {
      const std::vector<std::string>& known = in_layers[part->layer];
      if (std::find(known.begin(), known.end(), part->name) != known.end()) continue;
    }
    return unsupported(
        "[model] tensor {} is not supported: a {} of {} layers, as the config describes it, does "
        "not read it",
        printable(name), config.architecture, config.num_layers());
  }
  return ok_status();
}

}  // namespace pagoda

#include "model/model_config.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>

#include "core/log.h"
#include "model/config_limits.h"
#include "model/family.h"
#include "model/gguf/gguf_config.h"
#include "model/hf/hf_config.h"
#include "weights/mapped_file.h"

namespace pagoda {
namespace {

constexpr std::size_t kMaxJsonBytes = 16 << 20;  // real ones have a few kilobytes

Result<std::string> read_json_file(const std::string& path) {
  PAGODA_ASSIGN_OR_RETURN(const auto file, MappedFile::open(path));
  const auto bytes = file->bytes();
  if (bytes.size() > kMaxJsonBytes) {
    return data_loss("[config] {}: expected at most {} bytes, got {}", path, kMaxJsonBytes,
                     bytes.size());
  }
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string path_in(const Checkpoint& checkpoint, const char* name) {
  return (std::filesystem::path(checkpoint.folder()) / name).string();
}

// Returns the text of generation_config.json; empty: the checkpoint has none.
Result<std::string> read_generation_json(const Checkpoint& checkpoint) {
  const std::string path = path_in(checkpoint, "generation_config.json");
  std::error_code ignored;  // a path that cannot be examined counts as absent
  if (!std::filesystem::exists(path, ignored)) return std::string();
  PAGODA_ASSIGN_OR_RETURN(std::string json, read_json_file(path));
  if (json.empty()) return data_loss("[config] {}: expected a JSON object, got nothing", path);
  return json;
}

bool are_same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

bool hold_the_same(const HostTensor& a, const HostTensor& b) {
  if (a.format != b.format || !(a.shape == b.shape) || !are_same(a.bytes, b.bytes)) return false;
  if (!a.affine || !b.affine) return a.affine.has_value() == b.affine.has_value();
  return a.affine->layout == b.affine->layout && are_same(a.affine->scales, b.affine->scales) &&
         are_same(a.affine->biases, b.affine->biases);
}

// Returns whether the head is the embedding. As in transformers, a stored head that differs from
// the embedding overrides the flag: some tools leave the flag set when they train the head.
Result<bool> are_embeddings_tied(const Checkpoint& files, const ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const Checkpoint checkpoint, files.renamed(kLlamaTensorNames));
  constexpr std::string_view kHead = "lm_head.weight";
  constexpr std::string_view kEmbedding = "model.embed_tokens.weight";
  if (!config.tie_word_embeddings || !checkpoint.has(kHead) || !checkpoint.has(kEmbedding)) {
    return config.tie_word_embeddings;
  }
  PAGODA_ASSIGN_OR_RETURN(const HostTensor head, checkpoint.tensor(kHead));
  PAGODA_ASSIGN_OR_RETURN(const HostTensor embedding, checkpoint.tensor(kEmbedding));
  if (hold_the_same(head, embedding)) return true;
  log_warning("[config] config.json: tie_word_embeddings is ignored: {} is stored and differs",
              kHead);
  return false;
}

// Checks that experts are in groups of equal size, and that the chosen groups have enough of them.
Status check_experts(const ExpertsConfig& experts) {
  const RouteRule& rule = experts.rule;
  if (experts.num_experts % rule.num_groups != 0) {
    return invalid_argument("[config] expected experts in {} groups of equal size, got {}",
                            rule.num_groups, experts.num_experts);
  }
  const int num_open = experts.num_experts / rule.num_groups * rule.num_chosen_groups;
  if (rule.num_chosen > num_open) {
    return invalid_argument(
        "[config] expected at most {} experts of a token, those of {} of {} "
        "groups, got {}",
        num_open, rule.num_chosen_groups, rule.num_groups, rule.num_chosen);
  }
  return ok_status();
}

}  // namespace

Status check_consistency(const ModelConfig& config) {
  for (const LayerConfig& each : config.layers) {
    if (const ExpertsConfig* const experts = each.experts())
      PAGODA_RETURN_IF_ERROR(check_experts(*experts));
    const AttentionConfig& layer = each.attention();
    if (layer.num_heads % layer.num_kv_heads != 0) {
      return invalid_argument("[config] expected heads to be a multiple of kv heads, got {} and {}",
                              layer.num_heads, layer.num_kv_heads);
    }
    if (layer.kv_source >= 0 &&
        layer.num_kv_heads != config.layers[layer.kv_source].attention().num_kv_heads) {
      return invalid_argument(
          "[config] expected as many kv heads as the layer whose cache is read has, got {} and {}",
          layer.num_kv_heads, config.layers[layer.kv_source].attention().num_kv_heads);
    }
    if (layer.head_dim < kHeadDimRange.min || layer.head_dim > kHeadDimRange.max ||
        layer.head_dim % 2 != 0) {
      return invalid_argument("[config] expected an even head_dim of {} to {}, got {}",
                              kHeadDimRange.min, kHeadDimRange.max, layer.head_dim);
    }
  }
  return ok_status();
}

const ExpertsConfig* LayerConfig::experts() const {
  if (const auto* const both = std::get_if<ParallelMlpConfig>(&mlp)) return &both->experts;
  return std::get_if<ExpertsConfig>(&mlp);
}

int LayerConfig::mlp_width() const {
  if (const auto* const both = std::get_if<ParallelMlpConfig>(&mlp))
    return both->dense.intermediate_size;
  const ExpertsConfig* const mixture = experts();
  return mixture != nullptr ? mixture->intermediate_size : dense_mlp().intermediate_size;
}

bool share_caches(ModelConfig& config, int num_shared) {
  const int first_shared = config.num_layers() - num_shared;
  for (int i = first_shared; i < config.num_layers(); ++i) {
    AttentionConfig& layer = config.layers[i].attention();
    int source = first_shared - 1;
    while (source >= 0 && (config.layers[source].attention().window > 0) != (layer.window > 0))
      --source;
    if (source < 0) return false;
    layer.kv_source = source;
  }
  return true;
}

const AttentionConfig& ModelConfig::first_attention(bool has_window) const {
  const auto found = std::ranges::find_if(layers, [&](const LayerConfig& layer) {
    return (layer.attention().window > 0) == has_window;
  });
  return found == layers.end() ? layers.front().attention() : found->attention();
}

std::int64_t ModelConfig::num_idle_parameters() const {
  constexpr std::int64_t kMatrices = 3;  // gate, up and down
  std::int64_t count = 0;
  for (const LayerConfig& layer : layers) {
    const ExpertsConfig* const experts = layer.experts();
    if (experts == nullptr) continue;
    const std::int64_t of_expert = kMatrices * experts->intermediate_size * hidden_size;
    count += (experts->num_experts - experts->rule.num_chosen) * of_expert;
  }
  return count;
}

void set_served_context(ModelConfig& config, int max_model_len) {
  config.max_position_embeddings = max_model_len;
  for (RopeTable& table : config.rope_tables) {
    if (table.long_inv_freq.empty() || max_model_len <= table.original_positions) continue;
    table.inv_freq = std::move(table.long_inv_freq);
    table.long_inv_freq.clear();
  }
}

Result<ModelConfig> read_model_config(const Checkpoint& checkpoint) {
  if (checkpoint.gguf() != nullptr) return read_gguf_config(checkpoint);
  PAGODA_ASSIGN_OR_RETURN(const std::string config,
                          read_json_file(path_in(checkpoint, "config.json")));
  PAGODA_ASSIGN_OR_RETURN(const std::string generation, read_generation_json(checkpoint));
  PAGODA_ASSIGN_OR_RETURN(ModelConfig parsed, parse_hf_config(config, generation));
  PAGODA_ASSIGN_OR_RETURN(parsed.tie_word_embeddings, are_embeddings_tied(checkpoint, parsed));
  return parsed;
}

Result<PartialSampling> read_generation_defaults(const Checkpoint& checkpoint) {
  if (checkpoint.gguf() != nullptr) return read_gguf_generation_defaults(*checkpoint.gguf());
  PAGODA_ASSIGN_OR_RETURN(const std::string generation, read_generation_json(checkpoint));
  return parse_hf_generation_defaults(generation);
}

}  // namespace pagoda

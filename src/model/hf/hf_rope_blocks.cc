#include "model/hf/hf_rope_blocks.h"

#include <algorithm>
#include <string_view>

#include "core/log.h"
#include "model/hf/hf_keys.h"
#include "model/model_config.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

constexpr const char* kFull = "full_attention";
constexpr const char* kWindows = "sliding_attention";
constexpr const char* kOriginal = "original_max_position_embeddings";

bool is_filled(const nlohmann::json* block) {
  return block != nullptr && !(block->is_object() && block->empty());
}

bool differs_by_layer_type(const JsonFields& block) {
  return std::any_of(block.json().begin(), block.json().end(),
                     [](const nlohmann::json& value) { return value.is_object(); });
}

// Copies a top-level key of the config into a block that lacks it.
void fill_in(const JsonFields& config, const char* key, RopeBlock& block) {
  if (config.has(key) && !block.keys.contains(key)) block.keys[key] = *config.find(key);
}

// Returns the block under a key; an empty block if the key is absent.
Result<RopeBlock> block_under(const JsonFields& fields, const char* key) {
  if (!fields.has(key)) return RopeBlock{.where = fields.where()};
  PAGODA_ASSIGN_OR_RETURN(const JsonFields block, fields.object(key));
  return RopeBlock{.keys = block.json(), .where = block.where()};
}

// Reads the one block that all layers share. rope_scaling takes precedence over rope_parameters,
// its theta included. original_max_position_embeddings at the top overrides the block's.
Result<RopeBlock> read_shared_block(const JsonFields& config) {
  const bool has_scaling = is_filled(config.find("rope_scaling"));
  if (has_scaling && is_filled(config.find("rope_parameters"))) {
    log_warning("[config] {}: rope_parameters is ignored: rope_scaling stands beside it",
                config.where());
  }
  PAGODA_ASSIGN_OR_RETURN(RopeBlock block,
                          block_under(config, has_scaling ? "rope_scaling" : "rope_parameters"));
  if (differs_by_layer_type(block.fields())) {
    return unsupported("[config] {}: blocks that differ by layer type are not supported",
                       block.where);
  }
  fill_in(config, "rope_theta", block);
  fill_in(config, "partial_rotary_factor", block);
  if (config.has(kOriginal)) block.keys[kOriginal] = *config.find(kOriginal);
  return block;
}

// Warns of keys in rope_parameters beside the blocks of layer types; some of them are refused.
Status check_beside_blocks(const JsonFields& parameters, const Family& family) {
  nlohmann::json beside = parameters.json();
  beside.erase(kFull);
  beside.erase(kWindows);
  const JsonFields others(beside, parameters.where());
  PAGODA_RETURN_IF_ERROR(check_rope_keys(others, family));
  for (const auto& [key, value] : beside.items()) {
    if (value.is_null()) continue;
    // transformers reads `truncate` here, whatever the blocks say.
    if (key == "truncate") {
      return unsupported("[config] {}: truncate beside blocks of layer types is not supported",
                         parameters.where());
    }
    log_warning("[config] {}: {} is ignored: layers rotate as {} and {} say", parameters.where(),
                key, kFull, kWindows);
  }
  return ok_status();
}

// Refuses `truncate` in the block of a layer type, where transformers does not look for it.
Status check_truncate(const JsonFields& block) {
  if (!block.has("truncate") || *block.find("truncate") == true) return ok_status();
  return unsupported("[config] {}: truncate {} is not supported for layers of one type",
                     block.where(), printable(json_text(*block.find("truncate")), 40));
}

// Merges rope_scaling into the block of full-attention layers.
Status add_scaling(const JsonFields& config, const JsonFields& parameters, const Family& family,
                   RopeBlock& full) {
  if (!is_filled(config.find("rope_scaling"))) return ok_status();
  if (!family.reads_rope_scaling) {
    return unsupported("[config] {}: rope_scaling is not supported; rope_parameters is",
                       config.where());
  }
  PAGODA_ASSIGN_OR_RETURN(const JsonFields scaling, config.object("rope_scaling"));
  if (config.has("rope_parameters") && !parameters.has(kFull)) {
    return unsupported(
        "[config] {}: rope_scaling beside a rope_parameters without {} is not supported",
        config.where(), kFull);
  }
  PAGODA_RETURN_IF_ERROR(check_truncate(scaling));
  // In transformers the block's rope_type would then override rope_scaling's `type`, its older
  // name.
  if (scaling.has("type") && !scaling.has("rope_type")) {
    return unsupported(
        "[config] {}: type without rope_type is not supported for layers of one type",
        scaling.where());
  }
  for (const auto& [key, value] : scaling.json().items()) {
    if (full.keys.contains(key) && full.keys[key] != value) {
      log_warning("[config] {}: {} is ignored: rope_scaling stands beside it", full.where, key);
    }
    full.keys[key] = value;
  }
  full.where = scaling.where();
  return ok_status();
}

// Fills in the theta of each block that has none.
Status add_thetas(const JsonFields& config, const Family& family, RopeBlocks& blocks) {
  fill_in(config, "rope_theta", blocks.full);
  if (blocks.windows.keys.contains("rope_theta")) return ok_status();
  if (family.reads("rope_local_base_freq")) {
    if (!config.has("rope_local_base_freq"))
      return config.wrong("rope_local_base_freq", "a number");
    blocks.windows.keys["rope_theta"] = *config.find("rope_local_base_freq");
    return ok_status();
  }
  // OLMo 3's windows rotate by the class's default theta, whatever the top-level rope_theta is.
  const auto defaults = parse_json(family.defaults);
  blocks.windows.keys["rope_theta"] = defaults.value("rope_theta", RopeTable().theta);
  return ok_status();
}

// Requires a theta in each block, for families whose configs have only rope_parameters.
Status check_thetas(const JsonFields& parameters) {
  for (const char* type : {kFull, kWindows}) {
    PAGODA_ASSIGN_OR_RETURN(const JsonFields block, parameters.object(type));
    if (!block.has("rope_theta")) return block.wrong("rope_theta", "a number");
  }
  return ok_status();
}

Result<JsonFields> object_or_nothing(const JsonFields& fields, const char* key) {
  static const nlohmann::json nothing = nlohmann::json::object();
  if (!fields.has(key)) return JsonFields(nothing, fields.where());
  return fields.object(key);
}

// Reads a block for each type of layer.
Result<RopeBlocks> read_type_blocks(const JsonFields& config, const Family& family) {
  PAGODA_ASSIGN_OR_RETURN(const JsonFields parameters,
                          object_or_nothing(config, "rope_parameters"));
  PAGODA_RETURN_IF_ERROR(check_beside_blocks(parameters, family));
  RopeBlocks blocks;
  PAGODA_ASSIGN_OR_RETURN(blocks.full, block_under(parameters, kFull));
  PAGODA_ASSIGN_OR_RETURN(blocks.windows, block_under(parameters, kWindows));
  for (const RopeBlock* block : {&blocks.full, &blocks.windows})
    PAGODA_RETURN_IF_ERROR(check_truncate(block->fields()));
  PAGODA_RETURN_IF_ERROR(add_scaling(config, parameters, family, blocks.full));
  PAGODA_RETURN_IF_ERROR(family.reads_rope_scaling ? add_thetas(config, family, blocks)
                                                   : check_thetas(parameters));
  for (RopeBlock* block : {&blocks.full, &blocks.windows})
    fill_in(config, "partial_rotary_factor", *block);
  return blocks;
}

}  // namespace

Result<RopeBlocks> read_rope_blocks(const JsonFields& config, const Family& family) {
  if (family.windows_have_own_rope) return read_type_blocks(config, family);
  RopeBlocks blocks;
  PAGODA_ASSIGN_OR_RETURN(blocks.full, read_shared_block(config));
  return blocks;
}

}  // namespace pagoda

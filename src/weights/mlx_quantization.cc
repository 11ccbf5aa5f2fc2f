#include "weights/mlx_quantization.h"

#include <cstdint>
#include <utility>

#include "core/json.h"
#include "quant/affine.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

using nlohmann::json;

// Widths of an entry that has none.
constexpr MlxWidths kMlxWidths{.bits = 4, .group_size = 64};
constexpr MlxWidths kMxfp4Widths{.bits = 4, .group_size = 32, .is_mxfp4 = true};

const json* find(const json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

// Returns whether the mode is MXFP4.
Result<bool> read_mode(const json& block, const std::string& where) {
  const json* mode = find(block, "mode");
  if (mode == nullptr || *mode == "affine") return false;
  if (*mode == "mxfp4") return true;
  return unsupported("[config] {}: mode {} is not supported; affine and mxfp4 are", where,
                     printable(mode->dump(-1, ' ', true), 40));
}

// Reads a width. Without `otherwise` the key is required.
Result<int> read_width(const json& block, const char* key, const std::string& where,
                       std::optional<int> otherwise) {
  const json* value = find(block, key);
  if (value == nullptr && otherwise) return *otherwise;
  if (value == nullptr || !value->is_number_unsigned() ||
      value->get<std::uint64_t>() > kMaxAffineGroup) {
    return invalid_argument("[config] {}: {}: expected an integer of 1 to {}, got {}", where, key,
                            kMaxAffineGroup,
                            value == nullptr ? "none" : printable(value->dump(-1, ' ', true), 40));
  }
  return value->get<int>();
}

// Reads the widths of `block`, which describes one module, or all modules without a block of their
// own.
Result<MlxWidths> read_widths(const json& block, const std::string& where,
                              std::optional<MlxWidths> otherwise) {
  PAGODA_ASSIGN_OR_RETURN(const bool is_mxfp4, read_mode(block, where));
  if (is_mxfp4) otherwise = kMxfp4Widths;
  const auto default_of = [&otherwise](int MlxWidths::*width) {
    return otherwise ? std::optional(*otherwise.*width) : std::nullopt;
  };
  MlxWidths widths{.is_mxfp4 = is_mxfp4};
  PAGODA_ASSIGN_OR_RETURN(widths.bits,
                          read_width(block, "bits", where, default_of(&MlxWidths::bits)));
  PAGODA_ASSIGN_OR_RETURN(widths.group_size, read_width(block, "group_size", where,
                                                        default_of(&MlxWidths::group_size)));
  if (is_mxfp4) {
    if (widths.bits == kMxfp4Widths.bits && widths.group_size == kMxfp4Widths.group_size)
      return widths;
    return unsupported(
        "[config] {}: {} bits in groups of {} are not supported in mode mxfp4; 4 bits in groups of "
        "32 are",
        where, widths.bits, widths.group_size);
  }
  if (!is_affine_layout({.bits = widths.bits, .group_size = widths.group_size})) {
    return unsupported(
        "[config] {}: {} bits in groups of {} are not supported; 2, 3, 4, 5, 6 and 8 bits in "
        "groups of 32, 64 and 128 are",
        where, widths.bits, widths.group_size);
  }
  return widths;
}

Result<MlxQuantization> read_block(const json& block, const std::string& where) {
  if (!block.is_object()) {
    return invalid_argument("[config] {}: expected an object, got {}", where,
                            printable(json_text(block), 40));
  }
  if (const json* method = find(block, "quant_method")) {
    return unsupported(
        "[config] {}: quant_method {} is not supported; MLX's affine groups and mxfp4 are", where,
        printable(method->dump(-1, ' ', true), 40));
  }
  MlxQuantization config;
  PAGODA_ASSIGN_OR_RETURN(config.widths, read_widths(block, where, std::nullopt));
  for (const auto& [module, value] : block.items()) {
    // True means that the module has the common widths, so it needs no entry.
    if (value.is_boolean() && !value.get<bool>()) config.modules.emplace(module, std::nullopt);
    if (!value.is_object()) continue;
    PAGODA_ASSIGN_OR_RETURN(
        const MlxWidths widths,
        read_widths(value, fmt::format("{}: {}", where, printable(module)), kMlxWidths));
    config.modules.emplace(module, widths);
  }
  return config;
}

// Returns whether a config says that experts are in MXFP4 as gpt-oss has them. Their tensors' names
// say so, too (weights/mxfp4_tensor.h).
bool is_gpt_oss_mxfp4(const json& block) {
  return block.is_object() && block.value("quant_method", json()) == "mxfp4";
}

}  // namespace

bool MlxQuantization::is_mxfp4(std::string_view module) const {
  const auto named = modules.find(module);
  if (named == modules.end()) return widths.is_mxfp4;
  return named->second && named->second->is_mxfp4;
}

Result<std::optional<MlxQuantization>> parse_mlx_quantization(std::string_view config_json) {
  PAGODA_ASSIGN_OR_RETURN(const json config,
                          parse_json_file(config_json, "[config] config.json", /*max_depth=*/4));
  for (const char* key : {"quantization", "quantization_config"}) {
    const json* block = find(config, key);
    if (block == nullptr || is_gpt_oss_mxfp4(*block)) continue;
    PAGODA_ASSIGN_OR_RETURN(MlxQuantization read,
                            read_block(*block, fmt::format("config.json: {}", key)));
    return std::optional(std::move(read));
  }
  return std::optional<MlxQuantization>();
}

}  // namespace pagoda

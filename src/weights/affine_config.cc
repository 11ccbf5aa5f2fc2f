#include "weights/affine_config.h"

#include <cstdint>
#include <utility>

#include "core/json.h"
#include "quant/affine.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

using nlohmann::json;

constexpr AffineWidths kMlxWidths{.bits = 4, .group_size = 64};  // if a module's entry has none

const json* find(const json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

Status check_mode(const json& block, const std::string& where) {
  const json* mode = find(block, "mode");
  if (mode == nullptr || *mode == "affine") return ok_status();
  return unsupported("[config] {}: mode {} is not supported; affine is", where,
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
Result<AffineWidths> read_widths(const json& block, const std::string& where,
                                 std::optional<AffineWidths> otherwise) {
  PAGODA_RETURN_IF_ERROR(check_mode(block, where));
  const auto default_of = [&otherwise](int AffineWidths::*width) {
    return otherwise ? std::optional(*otherwise.*width) : std::nullopt;
  };
  AffineWidths widths;
  PAGODA_ASSIGN_OR_RETURN(widths.bits,
                          read_width(block, "bits", where, default_of(&AffineWidths::bits)));
  PAGODA_ASSIGN_OR_RETURN(widths.group_size, read_width(block, "group_size", where,
                                                        default_of(&AffineWidths::group_size)));
  if (!is_affine_layout({.bits = widths.bits, .group_size = widths.group_size})) {
    return unsupported(
        "[config] {}: {} bits in groups of {} are not supported; 2, 3, 4, 5, 6 and 8 bits in "
        "groups of 32, 64 and 128 are",
        where, widths.bits, widths.group_size);
  }
  return widths;
}

Result<AffineConfig> read_block(const json& block, const std::string& where) {
  if (!block.is_object()) {
    return invalid_argument("[config] {}: expected an object, got {}", where,
                            printable(json_text(block), 40));
  }
  if (const json* method = find(block, "quant_method")) {
    return unsupported("[config] {}: quant_method {} is not supported; MLX's affine groups are",
                       where, printable(method->dump(-1, ' ', true), 40));
  }
  AffineConfig config;
  PAGODA_ASSIGN_OR_RETURN(config.widths, read_widths(block, where, std::nullopt));
  for (const auto& [module, value] : block.items()) {
    // True means that the module has the common widths, so it needs no entry.
    if (value.is_boolean() && !value.get<bool>()) config.modules.emplace(module, std::nullopt);
    if (!value.is_object()) continue;
    PAGODA_ASSIGN_OR_RETURN(
        const AffineWidths widths,
        read_widths(value, fmt::format("{}: {}", where, printable(module)), kMlxWidths));
    config.modules.emplace(module, widths);
  }
  return config;
}

}  // namespace

Result<std::optional<AffineConfig>> parse_affine_config(std::string_view config_json) {
  PAGODA_ASSIGN_OR_RETURN(const json config,
                          parse_json_file(config_json, "[config] config.json", /*max_depth=*/4));
  for (const char* key : {"quantization", "quantization_config"}) {
    const json* block = find(config, key);
    if (block == nullptr) continue;
    PAGODA_ASSIGN_OR_RETURN(AffineConfig read,
                            read_block(*block, fmt::format("config.json: {}", key)));
    return std::optional(std::move(read));
  }
  return std::optional<AffineConfig>();
}

}  // namespace pagoda

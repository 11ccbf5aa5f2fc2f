#include "model/refused_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

namespace pagoda {
namespace {

// The beginning of keys that show that a model has a part.
struct TellingKey {
  std::string_view beginning;
  std::string_view part;
};

constexpr std::string_view kExperts = "experts";
constexpr std::string_view kStates = "recurrent states";
constexpr std::string_view kConvolutions = "convolutions over tokens";
constexpr std::string_view kLatents = "latent attention";
constexpr std::string_view kEncoder = "an encoder";

constexpr TellingKey kHfKeys[] = {
    {"num_experts", kExperts},
    {"num_local_experts", kExperts},
    {"n_routed_experts", kExperts},
    {"moe_num_experts", kExperts},
    {"moe_intermediate_size", kExperts},
    {"mamba_", kStates},
    {"ssm_", kStates},
    {"time_mix", kStates},
    {"linear_num_", kStates},
    {"lru_width", kStates},
    {"conv_L_cache", kConvolutions},
    {"kv_lora_rank", kLatents},
    {"is_encoder_decoder", kEncoder},
    {"type_vocab_size", kEncoder},
};

constexpr TellingKey kGgufKeys[] = {
    {"expert_count", kExperts},
    {"ssm.", kStates},
    {"wkv.", kStates},
    {"shortconv.", kConvolutions},
    {"attention.kv_lora_rank", kLatents},
};

void add_part(std::span<const TellingKey> keys, std::string_view key,
              std::vector<std::string_view>& parts) {
  for (const TellingKey& each : keys) {
    if (!key.starts_with(each.beginning)) continue;
    if (std::find(parts.begin(), parts.end(), each.part) == parts.end()) parts.push_back(each.part);
  }
}

bool asks_for_something(const nlohmann::json& value) {
  return !value.is_null() && value != false && value != 0 && !value.empty();
}

std::string listed_parts(const std::vector<std::string_view>& parts) {
  return parts.empty() ? "" : fmt::format(" with {}", fmt::join(parts, " and "));
}

}  // namespace

std::string refused_parts(const nlohmann::json& config) {
  std::vector<std::string_view> parts;
  const auto text = config.find("text_config");
  for (const nlohmann::json* object : {&config, text == config.end() ? &config : &*text}) {
    if (!object->is_object()) continue;
    for (const auto& [key, value] : object->items()) {
      if (asks_for_something(value)) add_part(kHfKeys, key, parts);
    }
  }
  return listed_parts(parts);
}

std::string refused_parts(const GgufFile& file, std::string_view architecture) {
  std::vector<std::string_view> parts;
  const std::string prefix = std::string(architecture) + ".";
  for (const GgufEntry& entry : file.entries()) {
    if (!entry.key.starts_with(prefix)) continue;
    const auto number = file.number(entry.key);
    if (number.ok() && *number == 0) continue;
    add_part(kGgufKeys, entry.key.substr(prefix.size()), parts);
  }
  return listed_parts(parts);
}

}  // namespace pagoda

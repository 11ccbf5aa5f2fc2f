#include "model/family.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/families/family_pages.h"

namespace pagoda {
namespace {

constexpr const Family* kFamilies[] = {&kLlama,      &kMistral,          &kQwen2,    &kQwen3,
                                       &kGemma2,     &kGemma3,           &kGemma4,   &kGlm4,
                                       &kGranite,    &kMinistral3,       &kOlmo2,    &kOlmo3,
                                       &kPhi3,       &kQwen3Vl,          &kSmolLm3,  &kMixtral,
                                       &kOlmoe,      &kQwen2Moe,         &kQwen3Moe, &kQwen3VlMoe,
                                       &kGraniteMoe, &kGraniteMoeShared, &kGptOss,   &kLaguna,
                                       &kGlm4Moe,    &kErnie45Moe};

constexpr TextTower kTextTowers[] = {
    {.model_type = "gemma3",
     .causal_class = "Gemma3ForConditionalGeneration",
     .default_text_type = "gemma3_text",
     .ties_by_default = true,
     .caps_logits = false},
    {.model_type = "gemma4",
     .causal_class = "Gemma4ForConditionalGeneration",
     .default_text_type = "gemma4_text",
     .ties_by_default = true},
    {.model_type = "mistral3",
     .causal_class = "Mistral3ForConditionalGeneration",
     .default_text_type = "mistral",
     .ties_by_default = true},
    {.model_type = "qwen3_vl",
     .causal_class = "Qwen3VLForConditionalGeneration",
     .default_text_type = "qwen3_vl_text"},
    {.model_type = "qwen3_vl_moe",
     .causal_class = "Qwen3VLMoeForConditionalGeneration",
     .default_text_type = "qwen3_vl_moe_text"},
};

std::string names_of(std::string_view Family::*name) {
  std::vector<std::string_view> names;
  for (const Family* family : families()) {
    if (std::find(names.begin(), names.end(), family->*name) == names.end())
      names.push_back(family->*name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

bool Family::reads(std::string_view key) const {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

bool Family::reads_gguf(std::string_view key) const {
  return std::find(gguf_keys.begin(), gguf_keys.end(), key) != gguf_keys.end();
}

const TextTower* find_text_tower(std::string_view model_type) {
  const auto* const tower =
      std::find_if(std::begin(kTextTowers), std::end(kTextTowers),
                   [&](const TextTower& each) { return each.model_type == model_type; });
  return tower == std::end(kTextTowers) ? nullptr : tower;
}

std::string layer_prefix(int layer) {
  return fmt::format("model.layers.{}.", layer);
}

std::span<const Family* const> families() {
  return kFamilies;
}

const Family* find_family(std::string_view model_type) {
  for (const Family* family : families()) {
    if (family->model_type == model_type) return family;
  }
  return nullptr;
}

const Family* find_gguf_family(std::string_view architecture, GgufTraits traits) {
  const Family* found = nullptr;
  int best = -1;
  for (const Family* family : families()) {
    if (family->gguf_architecture != architecture) continue;
    const bool fits_window = traits.has_window == (family->windows != WindowRule::kNone);
    const bool fits_experts = traits.has_experts == family->may_have_experts();
    const int fit = (fits_experts ? 2 : 0) + (fits_window ? 1 : 0);
    if (fit > best) found = family;
    best = std::max(best, fit);
  }
  return found;
}

std::string supported_model_types() {
  return names_of(&Family::model_type);
}

std::string supported_gguf_architectures() {
  return names_of(&Family::gguf_architecture);
}

}  // namespace pagoda

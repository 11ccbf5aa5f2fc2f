#include "model/family.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pagoda {
namespace {

constexpr const Family* kFamilies[] = {&kLlama, &kMistral, &kQwen2, &kQwen3};

std::string names_of(std::string_view Family::*name) {
  std::vector<std::string_view> names;
  for (const Family* family : families()) {
    if (std::find(names.begin(), names.end(), family->*name) == names.end())
      names.push_back(family->*name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::span<const Family* const> families() {
  return kFamilies;
}

const Family* find_family(std::string_view model_type) {
  for (const Family* family : families()) {
    if (family->model_type == model_type) return family;
  }
  return nullptr;
}

const Family* find_gguf_family(std::string_view architecture, bool has_window) {
  const Family* found = nullptr;
  for (const Family* family : families()) {
    if (family->gguf_architecture != architecture) continue;
    const bool fits = has_window == (family->windows != WindowRule::kNone);
    if (found == nullptr || fits) found = family;
    if (fits) break;
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

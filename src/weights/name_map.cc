#include "weights/name_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace pagoda {
namespace {

using Side = std::string_view TensorName::*;

// Returns the name that is paired with `name`; empty if there is none.
std::string_view look_up(std::span<const TensorName> names, std::string_view name, Side from,
                         Side to) {
  for (const TensorName& pair : names) {
    if (pair.*from == name) return pair.*to;
  }
  return {};
}

// The text before a layer's number.
struct LayerPrefix {
  std::string_view from;
  std::string_view to;
};

// Translates a tensor's whole name; returns an empty string if the lists lack it.
std::string translate(const TensorNames& names, std::string_view name, const LayerPrefix& prefix,
                      Side from, Side to) {
  const std::size_t last_dot = name.rfind('.');
  if (last_dot == std::string_view::npos) return {};
  const std::string_view kind = name.substr(last_dot + 1);  // "weight" or "bias"
  std::string_view part = name.substr(0, last_dot);
  if (!part.starts_with(prefix.from)) {
    const std::string_view other = look_up(names.of_model, part, from, to);
    return other.empty() ? "" : fmt::format("{}.{}", other, kind);
  }
  part.remove_prefix(prefix.from.size());
  const std::size_t dot = part.find('.');
  if (dot == std::string_view::npos || dot == 0) return {};
  const std::string_view layer = part.substr(0, dot);
  if (!std::all_of(layer.begin(), layer.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return {};
  }
  const std::string_view whole = name.substr(prefix.from.size() + dot + 1);
  if (const std::string_view own = look_up(names.of_family, whole, from, to); !own.empty())
    return fmt::format("{}{}.{}", prefix.to, layer, own);
  std::string_view other = look_up(names.of_family, part.substr(dot + 1), from, to);
  if (other.empty()) other = look_up(names.of_layer, part.substr(dot + 1), from, to);
  return other.empty() ? "" : fmt::format("{}{}.{}.{}", prefix.to, layer, other, kind);
}

}  // namespace

std::string TensorNames::canonical_of(std::string_view gguf_name) const {
  std::string name = translate(*this, gguf_name, {.from = "blk.", .to = "model.layers."},
                               &TensorName::gguf, &TensorName::canonical);
  return name.empty() ? std::string(gguf_name) : name;
}

std::string TensorNames::gguf_of(std::string_view canonical_name) const {
  return translate(*this, canonical_name, {.from = "model.layers.", .to = "blk."},
                   &TensorName::canonical, &TensorName::gguf);
}

}  // namespace pagoda

#include "weights/name_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace pagoda {
namespace {

struct NamePair {
  std::string_view gguf;
  std::string_view canonical;
};

constexpr NamePair kModelNames[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
};

constexpr NamePair kLayerNames[] = {
    {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"}, {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};

using Side = std::string_view NamePair::*;

// What stands on the other side of `name`; empty where nothing does.
std::string_view look_up(std::span<const NamePair> names, std::string_view name, Side from,
                         Side to) {
  for (const NamePair& pair : names) {
    if (pair.*from == name) return pair.*to;
  }
  return {};
}

// What stands before a layer's number.
struct LayerPrefix {
  std::string_view from;
  std::string_view to;
};

// Empty for a name that the tables lack.
std::string translate(std::string_view name, const LayerPrefix& prefix, Side from, Side to) {
  const std::size_t last_dot = name.rfind('.');
  if (last_dot == std::string_view::npos) return {};
  const std::string_view kind = name.substr(last_dot + 1);  // "weight" or "bias"
  std::string_view part = name.substr(0, last_dot);
  if (!part.starts_with(prefix.from)) {
    const std::string_view other = look_up(kModelNames, part, from, to);
    return other.empty() ? "" : fmt::format("{}.{}", other, kind);
  }
  part.remove_prefix(prefix.from.size());
  const std::size_t dot = part.find('.');
  if (dot == std::string_view::npos || dot == 0) return {};
  const std::string_view layer = part.substr(0, dot);
  if (!std::all_of(layer.begin(), layer.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return {};
  }
  const std::string_view other = look_up(kLayerNames, part.substr(dot + 1), from, to);
  return other.empty() ? "" : fmt::format("{}{}.{}.{}", prefix.to, layer, other, kind);
}

}  // namespace

std::string canonical_tensor_name(std::string_view gguf_name) {
  std::string name = translate(gguf_name, {.from = "blk.", .to = "model.layers."}, &NamePair::gguf,
                               &NamePair::canonical);
  return name.empty() ? std::string(gguf_name) : name;
}

std::string gguf_tensor_name(std::string_view canonical_name) {
  return translate(canonical_name, {.from = "model.layers.", .to = "blk."}, &NamePair::canonical,
                   &NamePair::gguf);
}

}  // namespace pagoda

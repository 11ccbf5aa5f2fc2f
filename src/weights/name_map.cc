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

std::string_view look_up(std::span<const NamePair> names, std::string_view gguf) {
  for (const NamePair& pair : names) {
    if (pair.gguf == gguf) return pair.canonical;
  }
  return {};
}

}  // namespace

std::string canonical_tensor_name(std::string_view gguf_name) {
  std::string unchanged(gguf_name);
  const std::size_t last_dot = gguf_name.rfind('.');
  if (last_dot == std::string_view::npos) return unchanged;
  const std::string_view kind = gguf_name.substr(last_dot + 1);  // "weight" or "bias"
  std::string_view part = gguf_name.substr(0, last_dot);
  if (!part.starts_with("blk.")) {
    const std::string_view canonical = look_up(kModelNames, part);
    return canonical.empty() ? unchanged : fmt::format("{}.{}", canonical, kind);
  }
  part.remove_prefix(4);
  const std::size_t dot = part.find('.');
  if (dot == std::string_view::npos || dot == 0) return unchanged;
  const std::string_view layer = part.substr(0, dot);
  if (!std::all_of(layer.begin(), layer.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return unchanged;
  }
  const std::string_view canonical = look_up(kLayerNames, part.substr(dot + 1));
  if (canonical.empty()) return unchanged;
  return fmt::format("model.layers.{}.{}.{}", layer, canonical, kind);
}

}  // namespace pagoda

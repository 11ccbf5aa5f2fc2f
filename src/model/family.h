// Family: all that sets one family of models apart, on one page (llama.cc, qwen2.cc, ...): its
// names, how its checkpoints are read and written, and what its layers have beside what their
// config says.
//
// Dense pre-norm decoders share decoder.cc. families() is the only list of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "model/model_config.h"
#include "weights/name_map.h"

namespace pagoda {

class ArchitectureKeys;
class JsonFields;

// The layers that config.json's sliding_window is for.
enum class WindowRule : std::uint8_t {
  kNone,       // none: the family has no windows
  kAllLayers,  // all of them, or those that layer_types names
  kByLayer,  // those that layer_types or max_window_layers names, where use_sliding_window says so
  kPattern,  // those that layer_types names, or all but every window_pattern-th
  kUnrotated,  // those that layer_types names; or, where use_sliding_window says so, those without a
               // rotation
};

// Behind "model.layers.N."; empty: there is no such norm.
struct LayerNormNames {
  std::string_view before_attention = "input_layernorm";
  std::string_view behind_attention;
  std::string_view before_mlp = "post_attention_layernorm";
  std::string_view behind_mlp;
  std::string_view behind_per_layer;  // of what a layer's own embedding adds
};

// GGUF's names of what is not of a layer, the same for all families.
inline constexpr TensorName kModelTensorNames[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"cls.output", "score"},
};

// GGUF's names of projections and of queries' and keys' norms, the same for all families but for what
// a page looks up first.
inline constexpr TensorName kLayerTensorNames[] = {
    {"attn_q", "self_attn.q_proj"},      {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},      {"attn_qkv", "self_attn.qkv_proj"},
    {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"}, {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},           {"ffn_down", "mlp.down_proj"},
};

// GGUF's names of Llama's tensors, which most families share.
extern const TensorNames kLlamaTensorNames;

// The sizes by which GGUF's readers know models apart.
struct GgufSizes {
  int num_layers = 0;
  int hidden_size = 0;
};

struct Family {
  // Names.
  std::string_view model_type;    // Hugging Face's, and ModelConfig::architecture
  std::string_view causal_class;  // what config.json's `architectures` may name
  std::string_view base_class;  // the same without its head; empty: LlamaModel of LlamaForCausalLM
  std::string_view gguf_architecture;  // GGUF's general.architecture; families may share one
  // A class of a checkpoint's own code that transformers has taken over, so that it computes what
  // causal_class does; empty: none.
  std::string_view own_code;
  const TensorNames* gguf_tensor_names = &kLlamaTensorNames;

  // The meaning of config.json's keys. `defaults` is a JSON object of what transformers takes for
  // those that a file leaves out; `keys` are read beside those that all families read.
  std::string_view defaults = "{}";
  std::span<const std::string_view> keys;
  bool reads_attention_bias = false;  // attention_bias: of q, k, v and o
  bool reads_mlp_bias = false;        // mlp_bias
  WindowRule windows = WindowRule::kNone;
  int window_pattern = 0;              // of WindowRule::kPattern, and of GGUF files
  bool windows_have_own_rope = false;  // layers with a window rotate by another table
  bool reads_rope_scaling = true;      // and rope_theta, as configs had them before rope_parameters
  bool calls_longrope_yarn = false;
  RopeStyle rope_style = RopeStyle::kHalves;  // of Hugging Face's rows of q and k
  bool norms_lack_one = false;                // Hugging Face's norm weights are w of 1 + w
  bool scales_embedding = false;              // by sqrt(hidden_size)
  // Finishes a config that all but rotations and ids have been read of. Null: there is nothing to do.
  // Errors name the key.
  Status (*finish_hf_config)(const JsonFields& fields, ModelConfig& config) = nullptr;

  // The meaning of GGUF's keys: those of `gguf_keys` are read beside those of all families, without
  // the architecture's prefix. kAdjacent where converters permute the rows of q and k.
  std::span<const std::string_view> gguf_keys;
  RopeStyle gguf_rope_style = RopeStyle::kHalves;
  bool gguf_lacks_windows = false;  // files say which layers have a window only where it is unusual
  double gguf_window_theta = 0;     // of windows, where a file has none; 0: that of other layers
  double gguf_logits_cap = 0;       // where a file has none
  // Returns what scores are scaled by where a file has no key for it. Null: default_score_scale().
  float (*gguf_score_scale)(const GgufSizes& sizes, const AttentionConfig& attention) = nullptr;
  // Finishes a config as finish_hf_config does. The checkpoint has canonical names.
  Status (*finish_gguf_config)(const Checkpoint& checkpoint, const ArchitectureKeys& keys,
                               ModelConfig& config) = nullptr;

  // Layers.
  LayerNormNames norms;
  QkNorm qk_norm = QkNorm::kNone;
  // Names the factor, [1], of all that leaves a layer, behind "model.layers.N."; empty: there is
  // none.
  std::string_view layer_factor;

  bool reads(std::string_view key) const;
  bool reads_gguf(std::string_view key) const;
};

// The text tower of a checkpoint that has others beside it, for images or sound, which are passed
// over.
struct TextTower {
  std::string_view model_type;         // of config.json, whose text_config is the tower's
  std::string_view causal_class;       // what config.json's `architectures` may name
  std::string_view default_text_type;  // model_type of a text_config that has none
  bool ties_by_default = false;        // tie_word_embeddings of config.json, where it is absent
  bool caps_logits = true;             // by final_logit_softcapping, as the text model alone does
};

// Returns null for a model_type of no tower.
const TextTower* find_text_tower(std::string_view model_type);

std::span<const Family* const> families();

// Returns, like the next one, null for a name that no page has.
const Family* find_family(std::string_view model_type);
// Finds the family of a GGUF file. has_window: the file has one, which tells families of the same
// architecture apart.
const Family* find_gguf_family(std::string_view architecture, bool has_window);

// Returns the names for messages, each once: "llama, mistral, ...".
std::string supported_model_types();
std::string supported_gguf_architectures();

}  // namespace pagoda

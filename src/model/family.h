// Family: everything specific to one family of models, in one source file (llama.cc, qwen2.cc,
// ...): its names, how its checkpoints are read and written, and properties of its layers that its
// config does not state.
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

// The layers to which config.json's sliding_window applies.
enum class WindowRule : std::uint8_t {
  kNone,       // none: the family has no windows
  kAllLayers,  // all of them, or those that layer_types names
  kByLayer,    // if use_sliding_window: those that layer_types or max_window_layers names
  kPattern,    // those that layer_types names, or all but every window_pattern-th
  kUnrotated,  // those that layer_types names; or, if use_sliding_window: those without a rotation
};

// Names that follow "model.layers.N."; empty: there is no such norm.
struct LayerNormNames {
  std::string_view before_attention = "input_layernorm";
  std::string_view behind_attention;
  std::string_view before_mlp = "post_attention_layernorm";
  std::string_view behind_mlp;
  std::string_view behind_per_layer;  // of the term that a layer's own embedding gates
};

// Names that follow "model.layers.N.", of a mixture's modules. An expert's modules follow `experts`
// and its number; modules with the matrices of all experts follow `experts` directly.
struct ExpertNames {
  std::string_view router = "mlp.gate";
  std::string_view choice_bias = "mlp.gate.e_score_correction_bias";
  std::string_view experts = "mlp.experts";
  std::string_view gate = "gate_proj";
  std::string_view up = "up_proj";
  std::string_view down = "down_proj";
  // Names that modules with the matrices of all experts may have as well: gates before up parts,
  // expert by expert, and the other half.
  std::string_view all_gate_up = "mlp.experts.gate_up_proj";
  std::string_view all_down = "mlp.experts.down_proj";
  std::string_view shared = "mlp.shared_expert";
  std::string_view shared_gate_up = "gate_up_proj";  // follows `shared`: gate and up as one
  std::string_view shared_down = "down_proj";
  std::string_view shared_gate = "mlp.shared_expert_gate";
  std::string_view expert_scales = "router.per_expert_scale";
  std::string_view mlx = "switch_mlp";  // in MLX's folders `experts`, beside its place here
  // Vectors of ParallelMlpBlock.
  std::string_view router_scale = "router.scale";
  std::string_view norm = "pre_feedforward_layernorm_2";
  std::string_view delta_norm = "post_feedforward_layernorm_2";
  std::string_view dense_delta_norm = "post_feedforward_layernorm_1";
  bool are_transposed = false;   // ExpertsSpec::is_transposed
  bool are_interleaved = false;  // ExpertsSpec::is_interleaved
};

// Returns "model.layers.N.", which the names of a layer's modules follow.
std::string layer_prefix(int layer);

// GGUF's names of tensors outside of layers, the same for all families.
inline constexpr TensorName kModelTensorNames[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"cls.output", "score"},
};

// GGUF's names of projections and of query and key norms, the same for all families. A family's own
// names are looked up before these.
inline constexpr TensorName kLayerTensorNames[] = {
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_qkv", "self_attn.qkv_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
    {"ffn_gate_inp", "mlp.gate"},
    {"ffn_gate_exps", "mlp.experts.gate_proj"},
    {"ffn_up_exps", "mlp.experts.up_proj"},
    {"ffn_gate_up_exps", "mlp.experts.gate_up_proj"},
    {"ffn_down_exps", "mlp.experts.down_proj"},
    {"exp_probs_b", "mlp.gate.e_score_correction_bias"},
    {"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
    {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
    {"ffn_down_shexp", "mlp.shared_expert.down_proj"},
};

// GGUF's names of Llama's tensors, which most families share.
extern const TensorNames kLlamaTensorNames;

// The sizes by which GGUF's readers tell models of a family apart.
struct GgufSizes {
  int num_layers = 0;
  int hidden_size = 0;
};

struct Family {
  // Names.
  std::string_view model_type;    // Hugging Face's, and ModelConfig::architecture
  std::string_view causal_class;  // what config.json's `architectures` may name
  std::string_view base_class;  // class without the head; empty: as LlamaModel for LlamaForCausalLM
  std::string_view gguf_architecture;  // GGUF's general.architecture; families may share one
  // A class that some checkpoints bring as code of their own. transformers has adopted it as
  // causal_class, so that both compute the same. Empty: none.
  std::string_view own_code;
  const TensorNames* gguf_tensor_names = &kLlamaTensorNames;

  // How keys of config.json are read. `defaults` is a JSON object of the values that transformers
  // assumes for absent keys. `keys` are read in addition to those that all families read.
  std::string_view defaults = "{}";
  std::span<const std::string_view> keys;
  bool reads_attention_bias = false;  // attention_bias: for q, k, v and o
  bool reads_mlp_bias = false;        // mlp_bias
  WindowRule windows = WindowRule::kNone;
  int window_pattern = 0;              // for WindowRule::kPattern, and for GGUF files
  bool windows_have_own_rope = false;  // layers with a window rotate by another table
  bool reads_rope_scaling = true;      // and rope_theta: the spelling before rope_parameters
  bool calls_longrope_yarn = false;
  RopeStyle rope_style = RopeStyle::kHalves;  // of Hugging Face's rows of q and k
  bool norms_lack_one = false;                // Hugging Face's norm weights are w of 1 + w
  bool scales_embedding = false;              // by sqrt(hidden_size)
  // Finishes a config of which everything except rotations and ids has been read. Null: there is
  // nothing to do. Errors name the key.
  Status (*finish_hf_config)(const JsonFields& fields, ModelConfig& config) = nullptr;

  // How GGUF keys are read. `gguf_keys` are read in addition to those of all families; they have no
  // architecture prefix. gguf_rope_style is kAdjacent if converters permute the rows of q and k.
  std::span<const std::string_view> gguf_keys;
  RopeStyle gguf_rope_style = RopeStyle::kHalves;
  bool gguf_lacks_windows = false;  // files list layers with a window only if unusual
  bool gguf_yarn_truncates = true;  // RopeScaling::truncates, for which files have no key
  double gguf_window_theta = 0;     // of layers with a window, if a file has none; 0: as others
  double gguf_logits_cap = 0;       // if a file has none
  bool gguf_joins_gate_up = false;  // gates and up parts of experts are one tensor
  Activation gguf_activation = Activation::kSilu;  // files have no key for it
  // Returns the scale of scores, if a file has no key for it. Null: default_score_scale().
  float (*gguf_score_scale)(const GgufSizes& sizes, const AttentionConfig& attention) = nullptr;
  // Finishes a config as finish_hf_config does. The checkpoint has canonical names.
  Status (*finish_gguf_config)(const Checkpoint& checkpoint, const ArchitectureKeys& keys,
                               ModelConfig& config) = nullptr;

  // Properties of layers.
  LayerNormNames norms;
  ExpertNames experts;
  QkNorm qk_norm = QkNorm::kNone;
  // The name after "model.layers.N." of the factor, [1], of a layer's output; empty: there is none.
  std::string_view layer_factor;

  bool reads(std::string_view key) const;
  bool reads_gguf(std::string_view key) const;
  // Returns the activation of a GGUF file's model, with the numbers that llama.cpp knows.
  GluArgs gguf_glu() const { return {.activation = gguf_activation}; }
  bool may_have_experts() const { return reads_gguf("expert_count"); }
};

// The text tower of a checkpoint that also has towers for images or sound, which are ignored.
struct TextTower {
  std::string_view model_type;         // of config.json, whose text_config is the tower's
  std::string_view causal_class;       // what config.json's `architectures` may name
  std::string_view default_text_type;  // model_type of a text_config that has none
  bool ties_by_default = false;        // tie_word_embeddings of config.json, if it is absent
  bool caps_logits = true;             // by final_logit_softcapping, as the plain text model does
};

// Returns null if no tower has this model_type.
const TextTower* find_text_tower(std::string_view model_type);

std::span<const Family* const> families();

// Returns null if no family has this name. find_gguf_family() does the same.
const Family* find_family(std::string_view model_type);
// The traits of a file that tell families of one GGUF architecture apart.
struct GgufTraits {
  bool has_window = false;   // the file has a sliding window
  bool has_experts = false;  // layers have experts
};
// Finds the family of a GGUF file.
const Family* find_gguf_family(std::string_view architecture, GgufTraits traits);

// Returns the names for error messages, each once: "llama, mistral, ...".
std::string supported_model_types();
std::string supported_gguf_architectures();

}  // namespace pagoda

// Laguna (poolside, 2026): Qwen3's layer with a gate for attention's output, windows, heads and
// rotations by layer, experts chosen by biased sigmoids, and a shared expert.
#include <string>
#include <vector>

#include "core/json.h"
#include "model/families/family_pages.h"
#include "model/gguf/gguf_experts.h"
#include "model/hf/hf_experts.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

constexpr std::string_view kLagunaKeys[] = {"gating",
                                            "gating_types",  // repeats `gating` for each layer
                                            "mlp_layer_types",
                                            "moe_intermediate_size",
                                            "moe_routed_scaling_factor",
                                            "moe_router_logit_softcapping",
                                            "num_attention_heads_per_layer",
                                            "num_experts",
                                            "num_experts_per_tok",
                                            "partial_rotary_factor",
                                            "shared_expert_intermediate_size"};

constexpr std::string_view kLagunaGgufKeys[] = {"attention.sliding_window_pattern",
                                                "expert_count",
                                                "expert_feed_forward_length",
                                                "expert_gating_func",
                                                "expert_shared_count",
                                                "expert_shared_feed_forward_length",
                                                "expert_used_count",
                                                "expert_weights_norm",
                                                "expert_weights_scale",
                                                "leading_dense_block_count",
                                                "rope.dimension_count",
                                                "rope.dimension_count_swa",
                                                "rope.freq_base_swa"};

constexpr TensorName kLagunaOwnNames[] = {
    {"attn_norm", "input_layernorm"},
    {"attn_gate", "self_attn.g_proj"},
    {"exp_probs_b", "mlp.experts.e_score_correction_bias"},
    {"ffn_norm", "post_attention_layernorm"},
};
constexpr TensorNames kLagunaNames = {
    .of_model = kModelTensorNames, .of_layer = kLayerTensorNames, .of_family = kLagunaOwnNames};

// The values of a mixture that neither format need state.
constexpr ExpertsConfig kLagunaExperts = {
    .rule = {.gating = Gating::kSigmoid, .is_normalised = true}, .has_choice_bias = true};

// Reads the heads of each layer, and whether a gate is of a head or of an element. Layers without
// layer_types have no window.
Status read_laguna_attention(const JsonFields& fields, ModelConfig& config) {
  constexpr const char* kHeads = "num_attention_heads_per_layer";
  PAGODA_ASSIGN_OR_RETURN(const std::vector<std::int64_t> heads,
                          fields.integers(kHeads, kHeadRange));
  const auto num_layers = static_cast<std::size_t>(config.num_layers());
  if (!heads.empty() && heads.size() != num_layers)
    return fields.wrong(kHeads, fmt::format("numbers of {} layers", num_layers));
  const nlohmann::json* const gating = fields.find("gating");
  const bool is_of_heads = gating == nullptr || *gating == true || *gating == "per-head";
  for (std::size_t i = 0; i < num_layers; ++i) {
    AttentionConfig& layer = config.layers[i].attention();
    if (!heads.empty()) layer.num_heads = static_cast<int>(heads[i]);
    if (!fields.has("layer_types")) layer.window = 0;
    layer.output_gate = is_of_heads ? OutputGate::kHead : OutputGate::kElement;
  }
  return ok_status();
}

// Sets the experts of the layers that mlp_layer_types calls sparse, or of all but the first one.
Status set_laguna_experts(const JsonFields& fields, const ExpertsConfig& experts,
                          ModelConfig& config) {
  constexpr const char* kTypes = "mlp_layer_types";
  std::vector<bool> are_sparse(static_cast<std::size_t>(config.num_layers()), true);
  are_sparse.front() = false;
  if (const nlohmann::json* const types = fields.find(kTypes)) {
    if (!types->is_array() || types->size() != are_sparse.size())
      return fields.wrong(kTypes, fmt::format("a list of {} layers", are_sparse.size()));
    for (std::size_t i = 0; i < are_sparse.size(); ++i) are_sparse[i] = (*types)[i] == "sparse";
  }
  set_experts(
      experts, [&](int layer) { return are_sparse[static_cast<std::size_t>(layer)]; }, config);
  return ok_status();
}

Status read_laguna(const JsonFields& fields, ModelConfig& config) {
  PAGODA_RETURN_IF_ERROR(read_laguna_attention(fields, config));
  PAGODA_ASSIGN_OR_RETURN(ExpertsConfig experts,
                          read_hf_experts(fields, {.other_num_experts = nullptr}, kLagunaExperts));
  PAGODA_ASSIGN_OR_RETURN(experts.shared_intermediate_size,
                          fields.integer("shared_expert_intermediate_size", kIntermediateRange));
  PAGODA_ASSIGN_OR_RETURN(const double factor,
                          fields.number_or("moe_routed_scaling_factor", {0, 1e6}, 1));
  PAGODA_ASSIGN_OR_RETURN(const double cap,
                          fields.number_or("moe_router_logit_softcapping", {-1e6, 1e6}, 0));
  experts.rule.factor = static_cast<float>(factor);
  experts.rule.logit_cap = cap > 0 ? static_cast<float>(cap) : 0;
  return set_laguna_experts(fields, experts, config);
}

// Reads the kind of gates from their tensors, and the windows of a file that does not list them: all
// layers but every fourth one, from the first on, have one.
Status read_laguna_gguf(const Checkpoint& checkpoint, const ArchitectureKeys& keys,
                        ModelConfig& config) {
  const bool lists_windows = keys.has("attention.sliding_window_pattern");
  for (int i = 0; i < config.num_layers(); ++i) {
    AttentionConfig& layer = config.layers[i].attention();
    if (!lists_windows && i % 4 == 0) layer.window = 0;
    const std::string name = layer_prefix(i) + "self_attn.g_proj.weight";
    PAGODA_ASSIGN_OR_RETURN(const HostTensor gate, checkpoint.tensor(name));
    const bool is_of_heads = gate.shape.rank() == 2 && gate.shape[0] == layer.num_heads;
    layer.output_gate = is_of_heads ? OutputGate::kHead : OutputGate::kElement;
  }
  return read_gguf_experts(checkpoint, keys, kLagunaExperts, config);
}

}  // namespace

const Family kLaguna = {
    .model_type = "laguna",
    .causal_class = "LagunaForCausalLM",
    .gguf_architecture = "laguna",
    .gguf_tensor_names = &kLagunaNames,
    .defaults = R"({"vocab_size": 100352, "hidden_size": 2048, "intermediate_size": 8192,
                    "num_hidden_layers": 40, "num_attention_heads": 48, "num_key_value_heads": 8,
                    "head_dim": 128, "max_position_embeddings": 131072, "sliding_window": 512,
                    "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
                    "num_experts_per_tok": 8, "num_experts": 256,
                    "rope_parameters": {
                      "full_attention": {"rope_type": "default", "rope_theta": 500000.0,
                                         "partial_rotary_factor": 0.5},
                      "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0,
                                            "partial_rotary_factor": 1.0}}})",
    .keys = kLagunaKeys,
    .reads_attention_bias = true,
    .windows = WindowRule::kAllLayers,
    .windows_have_own_rope = true,
    .reads_rope_scaling = false,
    .finish_hf_config = read_laguna,
    .gguf_keys = kLagunaGgufKeys,
    .finish_gguf_config = read_laguna_gguf,
    .experts = {.choice_bias = "mlp.experts.e_score_correction_bias"},
    .qk_norm = QkNorm::kHead};

}  // namespace pagoda

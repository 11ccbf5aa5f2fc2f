#include "model/hf_keys.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "weights/printable.h"

namespace pagoda {
namespace {

enum class Rule {
  kRead,      // hf_config.cc, or the reader of quantised tensors
  kHarmless,  // changes nothing that this engine computes, or what tensors tell by themselves
  kOnly,      // harmless as long as it has one of the values in `values`
};

struct KeyRule {
  std::string_view key;  // a '*' at the end stands for any rest
  Rule rule;
  std::string_view values = "[]";  // of kOnly, a JSON array; null is always one of them
};

// One row a key: a family that reads another one, or a tool that writes another one, adds its row.
constexpr KeyRule kConfigKeys[] = {
    {"architectures", Rule::kRead},
    {"attention_bias", Rule::kRead},
    {"auto_map", Rule::kRead},
    {"bos_token_id", Rule::kRead},
    {"eos_token_id", Rule::kRead},
    {"head_dim", Rule::kRead},
    {"hidden_act", Rule::kRead},
    {"hidden_size", Rule::kRead},
    {"intermediate_size", Rule::kRead},
    {"layer_types", Rule::kRead},
    {"max_position_embeddings", Rule::kRead},
    {"max_window_layers", Rule::kRead},
    {"mlp_bias", Rule::kRead},
    {"model_type", Rule::kRead},
    {"num_attention_heads", Rule::kRead},
    {"num_hidden_layers", Rule::kRead},
    {"num_key_value_heads", Rule::kRead},
    {"partial_rotary_factor", Rule::kRead},
    {"quantization", Rule::kRead},
    {"quantization_config", Rule::kRead},
    {"rms_norm_eps", Rule::kRead},
    {"rope_parameters", Rule::kRead},
    {"rope_scaling", Rule::kRead},
    {"rope_theta", Rule::kRead},
    {"sliding_window", Rule::kRead},
    {"tie_word_embeddings", Rule::kRead},
    {"use_sliding_window", Rule::kRead},
    {"vocab_size", Rule::kRead},

    // Variants of the arithmetic, at the value that turns them off.
    {"add_cross_attention", Rule::kOnly, "[false]"},
    {"alibi", Rule::kOnly, "[false]"},
    {"attention_multiplier", Rule::kOnly},
    {"attention_chunk_size", Rule::kOnly},
    {"attn_logit_softcapping", Rule::kOnly, "[0]"},
    {"clip_qkv", Rule::kOnly},
    {"cross_attention_hidden_size", Rule::kOnly},
    {"embedding_multiplier", Rule::kOnly, "[1]"},
    {"final_logit_softcapping", Rule::kOnly, "[0]"},
    {"hidden_activation", Rule::kOnly, R"(["silu", "swish"])"},
    {"is_causal", Rule::kOnly, "[true]"},
    {"is_encoder_decoder", Rule::kOnly, "[false]"},
    {"logit_scale", Rule::kOnly, "[1]"},
    {"logits_scaling", Rule::kOnly, "[1]"},
    {"n_routed_experts", Rule::kOnly, "[0]"},
    {"num_experts", Rule::kOnly, "[0]"},
    {"num_experts_per_tok", Rule::kOnly, "[0]"},
    {"num_local_experts", Rule::kOnly, "[0]"},
    {"num_nextn_predict_layers", Rule::kOnly, "[0]"},
    {"per_layer_config", Rule::kOnly, "[{}]"},
    {"pruned_heads", Rule::kOnly, "[{}]"},
    {"qk_layernorm", Rule::kOnly, "[false]"},
    {"qk_norm", Rule::kOnly, "[false]"},
    {"query_pre_attn_scalar", Rule::kOnly},
    {"residual_multiplier", Rule::kOnly, "[1]"},
    {"rope_interleaved", Rule::kOnly, "[false]"},
    {"rope_local_base_freq", Rule::kOnly},
    {"rotary_dim", Rule::kOnly},
    {"sliding_window_pattern", Rule::kOnly},
    {"text_config", Rule::kOnly},
    {"tie_encoder_decoder", Rule::kOnly, "[false]"},
    {"use_bidirectional_attention", Rule::kOnly, "[false]"},
    {"use_mrope", Rule::kOnly, "[false]"},
    {"use_qk_norm", Rule::kOnly, "[false]"},
    {"vision_config", Rule::kOnly},

    // Biases: a tensor is there or it is not.
    {"bias", Rule::kHarmless},
    {"no_bias", Rule::kHarmless},
    {"qkv_bias", Rule::kHarmless},
    {"use_bias", Rule::kHarmless},

    // Where the checkpoint comes from and what wrote it.
    {"_commit_hash", Rule::kHarmless},
    {"_name_or_path", Rule::kHarmless},
    {"author", Rule::kHarmless},
    {"base_model*", Rule::kHarmless},
    {"finetuning_task", Rule::kHarmless},
    {"is_composition", Rule::kHarmless},
    {"is_llama_config", Rule::kHarmless},
    {"language", Rule::kHarmless},
    {"license", Rule::kHarmless},
    {"model_name", Rule::kHarmless},
    {"name_or_path", Rule::kHarmless},
    {"transformers.js_config", Rule::kHarmless},
    {"transformers_version", Rule::kHarmless},
    {"unsloth_*", Rule::kHarmless},
    {"_unsloth_*", Rule::kHarmless},

    // How another engine runs it: types, kernels, caches, shards.
    {"_attn_implementation*", Rule::kHarmless},
    {"_experts_implementation*", Rule::kHarmless},
    {"_flash_attn_2_enabled", Rule::kHarmless},
    {"_from_model_config", Rule::kHarmless},
    {"attn_implementation", Rule::kHarmless},
    {"cache_implementation", Rule::kHarmless},
    {"chunk_size_feed_forward", Rule::kHarmless},
    {"dtype", Rule::kHarmless},
    {"keys_to_ignore_at_inference", Rule::kHarmless},
    {"output_attentions", Rule::kHarmless},
    {"output_hidden_states", Rule::kHarmless},
    {"output_router_logits", Rule::kHarmless},
    {"pretraining_tp", Rule::kHarmless},
    {"return_dict", Rule::kHarmless},
    {"tf_legacy_loss", Rule::kHarmless},
    {"torch_dtype", Rule::kHarmless},
    {"torchscript", Rule::kHarmless},
    {"trust_remote_code", Rule::kHarmless},
    {"use_bfloat16", Rule::kHarmless},
    {"use_cache", Rule::kHarmless},
    {"use_flash_attention*", Rule::kHarmless},
    {"use_flash_attn*", Rule::kHarmless},
    {"use_fused_*", Rule::kHarmless},

    // Training.
    {"attention_dropout", Rule::kHarmless},
    {"attention_probs_dropout_prob", Rule::kHarmless},
    {"attn_dropout", Rule::kHarmless},
    {"attn_pdrop", Rule::kHarmless},
    {"classifier_dropout", Rule::kHarmless},
    {"embd_pdrop", Rule::kHarmless},
    {"embedding_dropout", Rule::kHarmless},
    {"gradient_checkpointing*", Rule::kHarmless},
    {"hidden_dropout", Rule::kHarmless},
    {"hidden_dropout_prob", Rule::kHarmless},
    {"initializer_factor", Rule::kHarmless},
    {"initializer_range", Rule::kHarmless},
    {"loss_type", Rule::kHarmless},
    {"mlp_dropout", Rule::kHarmless},
    {"resid_pdrop", Rule::kHarmless},
    {"residual_dropout", Rule::kHarmless},
    {"router_aux_loss_coef", Rule::kHarmless},

    // Heads of other tasks, whose classes `architectures` names and whose tensors would be there.
    {"id2label", Rule::kHarmless},
    {"is_decoder", Rule::kHarmless},  // decoders are decoders whatever it says
    {"label2id", Rule::kHarmless},
    {"num_labels", Rule::kHarmless},
    {"problem_type", Rule::kHarmless},
    {"task_specific_params", Rule::kHarmless},

    // Text: the tokenizer's files say it.
    {"cls_token_id", Rule::kHarmless},
    {"decoder_start_token_id", Rule::kHarmless},
    {"mask_token_id", Rule::kHarmless},
    {"pad_token_id", Rule::kHarmless},
    {"prefix", Rule::kHarmless},
    {"sep_token_id", Rule::kHarmless},
    {"tokenizer_class", Rule::kHarmless},
    {"unk_token_id", Rule::kHarmless},

    // Lengths that no class reads beside max_position_embeddings.
    {"max_seq_len", Rule::kHarmless},
    {"max_sequence_length", Rule::kHarmless},
    {"model_max_length", Rule::kHarmless},
    {"original_max_position_embeddings", Rule::kHarmless},
    {"seq_length", Rule::kHarmless},
    {"tokenizer_model_max_length", Rule::kHarmless},

    // Sampling, which generation_config.json says.
    {"bad_words_ids", Rule::kHarmless},
    {"begin_suppress_tokens", Rule::kHarmless},
    {"diversity_penalty", Rule::kHarmless},
    {"do_sample", Rule::kHarmless},
    {"early_stopping", Rule::kHarmless},
    {"encoder_no_repeat_ngram_size", Rule::kHarmless},
    {"exponential_decay_length_penalty", Rule::kHarmless},
    {"forced_bos_token_id", Rule::kHarmless},
    {"forced_eos_token_id", Rule::kHarmless},
    {"length_penalty", Rule::kHarmless},
    {"max_length", Rule::kHarmless},
    {"max_new_tokens", Rule::kHarmless},
    {"min_length", Rule::kHarmless},
    {"no_repeat_ngram_size", Rule::kHarmless},
    {"num_beam*", Rule::kHarmless},
    {"num_return_sequences", Rule::kHarmless},
    {"output_scores", Rule::kHarmless},
    {"remove_invalid_values", Rule::kHarmless},
    {"repetition_penalty", Rule::kHarmless},
    {"return_dict_in_generate", Rule::kHarmless},
    {"suppress_tokens", Rule::kHarmless},
    {"temperature", Rule::kHarmless},
    {"top_k", Rule::kHarmless},
    {"top_p", Rule::kHarmless},
    {"typical_p", Rule::kHarmless},
};

constexpr KeyRule kRopeKeys[] = {
    {"factor", Rule::kRead},
    {"high_freq_factor", Rule::kRead},
    {"low_freq_factor", Rule::kRead},
    {"original_max_position_embeddings", Rule::kRead},
    {"partial_rotary_factor", Rule::kRead},
    {"rope_theta", Rule::kRead},
    {"rope_type", Rule::kRead},
    {"type", Rule::kRead},
    {"attention_factor", Rule::kOnly, "[1]"},
    {"finetuned", Rule::kHarmless},
};

bool matches(const KeyRule& row, std::string_view key) {
  if (!row.key.ends_with('*')) return row.key == key;
  return key.starts_with(row.key.substr(0, row.key.size() - 1));
}

bool is_allowed(const KeyRule& row, const nlohmann::json& value) {
  if (row.rule != Rule::kOnly) return true;
  const auto values = nlohmann::json::parse(row.values);
  return std::find(values.begin(), values.end(), value) != values.end();
}

// Null where no row is about the key.
const KeyRule* find_rule(std::span<const KeyRule> rows, std::string_view key) {
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [key](const KeyRule& each) { return matches(each, key); });
  return row == rows.end() ? nullptr : &*row;
}

Status check_keys(const JsonFields& fields, std::span<const KeyRule> rows) {
  for (const auto& [key, value] : fields.json().items()) {
    if (value.is_null()) continue;  // nothing is asked for
    const KeyRule* row = find_rule(rows, key);
    if (row == nullptr) {
      return unsupported(
          "[config] {}: key {} is not known and may change what the model computes; take it out of "
          "the file if it does not",
          fields.where(), printable(key, 60));
    }
    if (is_allowed(*row, value)) continue;
    return unsupported("[config] {}: {} {} is not supported", fields.where(), key,
                       printable(value.dump(), 40));
  }
  return ok_status();
}

}  // namespace

Status check_config_keys(const JsonFields& config) {
  return check_keys(config, kConfigKeys);
}

Status check_rope_keys(const JsonFields& block) {
  return check_keys(block, kRopeKeys);
}

}  // namespace pagoda

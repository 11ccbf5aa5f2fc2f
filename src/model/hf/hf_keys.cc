#include "model/hf/hf_keys.h"

#include "model/key_rules.h"

namespace pagoda {
namespace {

// One row per key. A family that reads another key, or a tool that writes another key, adds a row.
constexpr HfKeyRule kConfigKeys[] = {
    {"architectures", HfRule::kRead},
    {"attention_bias", HfRule::kRead},
    {"auto_map", HfRule::kRead},
    {"bos_token_id", HfRule::kRead},
    {"eos_token_id", HfRule::kRead},
    {"head_dim", HfRule::kRead},
    {"hidden_act", HfRule::kRead},
    {"hidden_size", HfRule::kRead},
    {"intermediate_size", HfRule::kRead},
    {"layer_types", HfRule::kRead},
    {"max_position_embeddings", HfRule::kRead},
    {"max_window_layers", HfRule::kRead},
    {"mlp_bias", HfRule::kRead},
    {"model_type", HfRule::kRead},
    {"num_attention_heads", HfRule::kRead},
    {"num_hidden_layers", HfRule::kRead},
    {"num_key_value_heads", HfRule::kRead},
    {"original_max_position_embeddings", HfRule::kRead},
    {"partial_rotary_factor", HfRule::kRead},
    {"quantization", HfRule::kRead},
    {"quantization_config", HfRule::kRead},
    {"rms_norm_eps", HfRule::kRead},
    {"rope_parameters", HfRule::kRead},
    {"rope_scaling", HfRule::kRead},
    {"rope_theta", HfRule::kRead},
    {"sbert_ce_default_activation_function", HfRule::kRead},  // serving/pooling/score_format.cc
    {"sentence_transformers", HfRule::kRead},                 // the same
    {"sliding_window", HfRule::kRead},
    {"tie_word_embeddings", HfRule::kRead},
    {"use_sliding_window", HfRule::kRead},
    {"vocab_size", HfRule::kRead},

    // Variants of the arithmetic, at the value that turns them off.
    {"add_cross_attention", HfRule::kOnly, "[false]"},
    {"alibi", HfRule::kOnly, "[false]"},
    {"attention_multiplier", HfRule::kOnly},
    {"attention_chunk_size", HfRule::kOnly},
    {"attn_logit_softcapping", HfRule::kOnly, "[0]"},
    {"clip_qkv", HfRule::kOnly},
    {"cross_attention_hidden_size", HfRule::kOnly},
    {"enable_moe_block", HfRule::kOnly, "[false]"},
    {"moe_apply_router_weight_on_input", HfRule::kOnly, "[false]"},
    {"embedding_multiplier", HfRule::kOnly, "[1]"},
    {"final_logit_softcapping", HfRule::kOnly, "[0]"},
    {"hidden_activation", HfRule::kOnly, R"(["silu", "swish"])"},
    {"no_rope_layer_interval", HfRule::kOnly},
    {"no_rope_layers", HfRule::kOnly},
    {"full_attn_mod", HfRule::kOnly, "[1]"},  // of Phi-4-mini, like the next key
    {"interpolate_factor", HfRule::kOnly, "[1]"},
    {"is_causal", HfRule::kOnly, "[true]"},
    {"lm_head_bias", HfRule::kOnly, "[false]"},
    {"is_encoder_decoder", HfRule::kOnly, "[false]"},
    {"logit_scale", HfRule::kOnly, "[1]"},
    {"logits_scaling", HfRule::kOnly, "[1]"},
    {"n_routed_experts", HfRule::kOnly, "[0]"},
    {"num_experts", HfRule::kOnly, "[0]"},
    {"num_experts_per_tok", HfRule::kOnly, "[0]"},
    {"num_local_experts", HfRule::kOnly, "[0]"},
    {"num_nextn_predict_layers", HfRule::kOnly, "[0]"},
    {"per_layer_config", HfRule::kOnly, "[{}]"},
    {"pruned_heads", HfRule::kOnly, "[{}]"},
    {"qk_layernorm", HfRule::kOnly, "[false]"},
    {"qk_norm", HfRule::kOnly, "[false]"},
    {"query_pre_attn_scalar", HfRule::kOnly},
    {"residual_multiplier", HfRule::kOnly, "[1]"},
    {"rope_interleaved", HfRule::kOnly, "[false]"},
    {"rope_local_base_freq", HfRule::kOnly},
    {"rotary_dim", HfRule::kOnly},
    {"sliding_window_pattern", HfRule::kOnly},
    {"swiglu_alpha", HfRule::kOnly},
    {"swiglu_limit", HfRule::kOnly},
    {"tie_encoder_decoder", HfRule::kOnly, "[false]"},
    {"use_bidirectional_attention", HfRule::kOnly, R"([false, "vision"])"},  // of images only
    {"use_mrope", HfRule::kOnly, "[false]"},
    {"use_qk_norm", HfRule::kOnly, "[false]"},

    // Biases: the stored tensors show whether there are any.
    {"bias", HfRule::kHarmless},
    {"no_bias", HfRule::kHarmless},
    {"qkv_bias", HfRule::kHarmless},
    {"use_bias", HfRule::kHarmless},

    // Names of the checkpoint's origin, and of the tool that wrote it.
    {"_commit_hash", HfRule::kHarmless},
    {"_name_or_path", HfRule::kHarmless},
    {"author", HfRule::kHarmless},
    {"base_model*", HfRule::kHarmless},
    {"finetuning_task", HfRule::kHarmless},
    {"is_composition", HfRule::kHarmless},
    {"is_llama_config", HfRule::kHarmless},
    {"language", HfRule::kHarmless},
    {"license", HfRule::kHarmless},
    {"model_name", HfRule::kHarmless},
    {"name_or_path", HfRule::kHarmless},
    {"transformers.js_config", HfRule::kHarmless},
    {"transformers_version", HfRule::kHarmless},
    {"unsloth_*", HfRule::kHarmless},
    {"_unsloth_*", HfRule::kHarmless},

    // How other engines run the model: types, kernels, caches, shards.
    {"_attn_implementation*", HfRule::kHarmless},
    {"_experts_implementation*", HfRule::kHarmless},
    {"_flash_attn_2_enabled", HfRule::kHarmless},
    {"_from_model_config", HfRule::kHarmless},
    {"attn_implementation", HfRule::kHarmless},
    {"cache_implementation", HfRule::kHarmless},
    {"chunk_size_feed_forward", HfRule::kHarmless},
    {"dtype", HfRule::kHarmless},
    {"keys_to_ignore_at_inference", HfRule::kHarmless},
    {"output_attentions", HfRule::kHarmless},
    {"output_hidden_states", HfRule::kHarmless},
    {"output_router_logits", HfRule::kHarmless},
    {"pretraining_tp", HfRule::kHarmless},
    {"return_dict", HfRule::kHarmless},
    {"tf_legacy_loss", HfRule::kHarmless},
    {"torch_dtype", HfRule::kHarmless},
    {"torchscript", HfRule::kHarmless},
    {"trust_remote_code", HfRule::kHarmless},
    {"use_bfloat16", HfRule::kHarmless},
    {"use_cache", HfRule::kHarmless},
    {"use_flash_attention*", HfRule::kHarmless},
    {"use_flash_attn*", HfRule::kHarmless},
    {"use_fused_*", HfRule::kHarmless},

    // Training.
    {"attention_dropout", HfRule::kHarmless},
    {"attention_probs_dropout_prob", HfRule::kHarmless},
    {"attn_dropout", HfRule::kHarmless},
    {"attn_pdrop", HfRule::kHarmless},
    {"classifier_dropout", HfRule::kHarmless},
    {"embd_pdrop", HfRule::kHarmless},
    {"embedding_dropout", HfRule::kHarmless},
    {"gradient_checkpointing*", HfRule::kHarmless},
    {"hidden_dropout", HfRule::kHarmless},
    {"hidden_dropout_prob", HfRule::kHarmless},
    {"initializer_factor", HfRule::kHarmless},
    {"initializer_range", HfRule::kHarmless},
    {"loss_type", HfRule::kHarmless},
    {"mlp_dropout", HfRule::kHarmless},
    {"resid_pdrop", HfRule::kHarmless},
    {"residual_dropout", HfRule::kHarmless},
    {"router_aux_loss_coef", HfRule::kHarmless},
    {"router_jitter_noise", HfRule::kHarmless},

    // Heads of other tasks: `architectures` would name their classes, and their tensors would be
    // stored.
    {"id2label", HfRule::kHarmless},
    {"is_decoder", HfRule::kHarmless},  // decoders are recognised without it
    {"label2id", HfRule::kHarmless},
    {"num_labels", HfRule::kHarmless},
    {"problem_type", HfRule::kHarmless},
    {"task_specific_params", HfRule::kHarmless},

    // Text: the tokenizer's files are read instead.
    {"cls_token_id", HfRule::kHarmless},
    {"decoder_start_token_id", HfRule::kHarmless},
    {"mask_token_id", HfRule::kHarmless},
    {"pad_token_id", HfRule::kHarmless},
    {"prefix", HfRule::kHarmless},
    {"sep_token_id", HfRule::kHarmless},
    {"tokenizer_class", HfRule::kHarmless},
    {"unk_token_id", HfRule::kHarmless},

    // Lengths that no class reads beside max_position_embeddings.
    {"max_seq_len", HfRule::kHarmless},
    {"max_sequence_length", HfRule::kHarmless},
    {"model_max_length", HfRule::kHarmless},
    {"seq_length", HfRule::kHarmless},
    {"sliding_window_size", HfRule::kHarmless},      // repeats sliding_window
    {"_sliding_window_pattern", HfRule::kHarmless},  // repeats layer_types
    {"tokenizer_model_max_length", HfRule::kHarmless},

    // Sampling: generation_config.json is read instead.
    {"bad_words_ids", HfRule::kHarmless},
    {"begin_suppress_tokens", HfRule::kHarmless},
    {"diversity_penalty", HfRule::kHarmless},
    {"do_sample", HfRule::kHarmless},
    {"early_stopping", HfRule::kHarmless},
    {"encoder_no_repeat_ngram_size", HfRule::kHarmless},
    {"exponential_decay_length_penalty", HfRule::kHarmless},
    {"forced_bos_token_id", HfRule::kHarmless},
    {"forced_eos_token_id", HfRule::kHarmless},
    {"length_penalty", HfRule::kHarmless},
    {"max_length", HfRule::kHarmless},
    {"max_new_tokens", HfRule::kHarmless},
    {"min_length", HfRule::kHarmless},
    {"no_repeat_ngram_size", HfRule::kHarmless},
    {"num_beam*", HfRule::kHarmless},
    {"num_return_sequences", HfRule::kHarmless},
    {"output_scores", HfRule::kHarmless},
    {"remove_invalid_values", HfRule::kHarmless},
    {"repetition_penalty", HfRule::kHarmless},
    {"return_dict_in_generate", HfRule::kHarmless},
    {"suppress_tokens", HfRule::kHarmless},
    {"temperature", HfRule::kHarmless},
    {"top_k", HfRule::kHarmless},
    {"top_p", HfRule::kHarmless},
    {"typical_p", HfRule::kHarmless},
};

constexpr HfKeyRule kRopeKeys[] = {
    {"factor", HfRule::kRead},
    {"high_freq_factor", HfRule::kRead},
    {"low_freq_factor", HfRule::kRead},
    {"original_max_position_embeddings", HfRule::kRead},
    {"partial_rotary_factor", HfRule::kRead},
    {"rope_theta", HfRule::kRead},
    {"rope_type", HfRule::kRead},
    {"type", HfRule::kRead},
    {"attention_factor", HfRule::kRead},
    {"beta_fast", HfRule::kRead},
    {"beta_slow", HfRule::kRead},
    {"long_factor", HfRule::kRead},
    {"mscale", HfRule::kRead},
    {"mscale_all_dim", HfRule::kRead},
    {"short_factor", HfRule::kRead},
    {"truncate", HfRule::kRead},
    {"finetuned", HfRule::kHarmless},
    {"max_position_embeddings", HfRule::kHarmless},  // repeats the config's
};

// The keys beside a text_config. They describe towers for images and sound, whose inputs are
// refused, and the ids of their tokens.
constexpr HfKeyRule kTowerKeys[] = {
    {"architectures", HfRule::kRead},
    {"auto_map", HfRule::kRead},
    {"bos_token_id", HfRule::kRead},
    {"eos_token_id", HfRule::kRead},
    {"model_type", HfRule::kRead},
    {"quantization", HfRule::kRead},
    {"quantization_config", HfRule::kRead},
    {"text_config", HfRule::kRead},
    {"tie_word_embeddings", HfRule::kRead},
    {"audio_*", HfRule::kHarmless},
    {"boa_token_*", HfRule::kHarmless},
    {"boi_token_*", HfRule::kHarmless},
    {"eoa_token_*", HfRule::kHarmless},
    {"eoi_token_*", HfRule::kHarmless},
    {"image_token_*", HfRule::kHarmless},
    {"mm_tokens_per_image", HfRule::kHarmless},
    {"multimodal_projector_bias", HfRule::kHarmless},
    {"projector_hidden_act", HfRule::kHarmless},
    {"spatial_merge_size", HfRule::kHarmless},
    {"video_token_*", HfRule::kHarmless},
    {"vision_*", HfRule::kHarmless},
};

}  // namespace

Status check_config_keys(const JsonFields& config, const Family& family) {
  return check_keys(config, kConfigKeys, {.family = &family});
}

Status check_tower_keys(const JsonFields& config) {
  return check_keys(config, kTowerKeys, {.more = kConfigKeys});
}

Status check_rope_keys(const JsonFields& block, const Family& family) {
  return check_keys(block, kRopeKeys, {.family = &family});
}

}  // namespace pagoda

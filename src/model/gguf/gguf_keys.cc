#include "model/gguf/gguf_keys.h"

#include <algorithm>
#include <optional>
#include <string>

#include "weights/printable.h"

namespace pagoda {
namespace {

enum class GgufRule {
  kRead,      // by gguf_config.cc, gguf_tokens.cc, gguf_sampling.cc, the parser or the tokenizer
  kHarmless,  // changes nothing that this engine computes
  kOnly,      // harmless as long as it is `value`: a number, or false and true as 0 and 1
  kOnlyText,  // harmless as long as it is `text`
  kEmpty,     // harmless as long as it is an empty list
};

struct GgufKeyRule {
  std::string_view key;  // ARCH: the architecture; a '*' at the end matches any rest
  GgufRule rule;
  double value = 0;
  std::string_view text = "";
};

// One row per key; the first row that matches applies. A family that reads another key adds a row.
constexpr GgufKeyRule kKeys[] = {
    {"ARCH.attention.head_count", GgufRule::kRead},
    {"ARCH.attention.head_count_kv", GgufRule::kRead},
    {"ARCH.attention.key_length", GgufRule::kRead},
    {"ARCH.attention.layer_norm_rms_epsilon", GgufRule::kRead},
    {"ARCH.attention.sliding_window", GgufRule::kRead},
    {"ARCH.attention.value_length", GgufRule::kRead},
    {"ARCH.block_count", GgufRule::kRead},
    {"ARCH.context_length", GgufRule::kRead},
    {"ARCH.embedding_length", GgufRule::kRead},
    {"ARCH.feed_forward_length", GgufRule::kRead},
    {"ARCH.pooling_type", GgufRule::kRead},
    {"ARCH.classifier.output_labels", GgufRule::kHarmless},  // names of classes
    {"ARCH.rope.dimension_count", GgufRule::kRead},
    {"ARCH.rope.freq_base", GgufRule::kRead},
    {"ARCH.rope.scale_linear", GgufRule::kRead},
    {"ARCH.rope.scaling.factor", GgufRule::kRead},
    {"ARCH.rope.scaling.original_context_length", GgufRule::kRead},
    {"ARCH.rope.scaling.type", GgufRule::kRead},
    {"ARCH.rope.scaling.yarn_attn_factor", GgufRule::kRead},
    {"ARCH.rope.scaling.yarn_beta_fast", GgufRule::kRead},
    {"ARCH.rope.scaling.yarn_beta_slow", GgufRule::kRead},

    // Variants of the arithmetic, at the value that turns them off.
    {"ARCH.attention.causal", GgufRule::kOnly, 1},
    {"ARCH.attention.clamp_kqv", GgufRule::kOnly, 0},
    {"ARCH.attention.max_alibi_bias", GgufRule::kOnly, 0},
    {"ARCH.attention.scale", GgufRule::kOnly, 0},
    {"ARCH.attention.shared_kv_layers", GgufRule::kOnly, 0},
    {"ARCH.attention.temperature_length", GgufRule::kOnly, 0},
    {"ARCH.attention.temperature_scale", GgufRule::kOnly, 0},
    {"ARCH.attn_logit_softcapping", GgufRule::kOnly, 0},
    {"ARCH.embedding_scale", GgufRule::kOnly, 1},
    {"ARCH.expert_count", GgufRule::kOnly, 0},
    {"ARCH.expert_used_count", GgufRule::kOnly, 0},
    {"ARCH.final_logit_softcapping", GgufRule::kOnly, 0},
    {"ARCH.leading_dense_block_count", GgufRule::kOnly, 0},
    {"ARCH.logit_scale", GgufRule::kOnly, 1},
    {"ARCH.nextn_predict_layers", GgufRule::kOnly, 0},
    {"ARCH.residual_scale", GgufRule::kOnly, 1},
    {"ARCH.rope.scaling.attn_factor", GgufRule::kOnly, 1},
    {"ARCH.rope.scaling.yarn_ext_factor", GgufRule::kOnly, 0},
    {"ARCH.rope.scaling.yarn_log_multiplier", GgufRule::kOnly, 0},
    {"ARCH.swin_norm", GgufRule::kOnly, 0},
    {"ARCH.use_parallel_residual", GgufRule::kOnly, 0},

    // Keys that repeat what tensors show, or have no effect with RMS norms or with a supported
    // scaling.
    {"ARCH.attention.layer_norm_epsilon", GgufRule::kHarmless},
    {"ARCH.rope.scaling.finetuned", GgufRule::kHarmless},
    {"ARCH.tensor_data_layout", GgufRule::kHarmless},
    {"ARCH.vocab_size", GgufRule::kHarmless},

    {"general.alignment", GgufRule::kRead},
    {"general.architecture", GgufRule::kRead},
    {"general.name", GgufRule::kRead},
    {"general.sampling.*", GgufRule::kRead},
    {"general.type", GgufRule::kOnlyText, 0, "model"},
    {"general.*", GgufRule::kHarmless},  // authors, licences, the file's type
    {"split.*", GgufRule::kRead},

    {"pagoda.tokenizer.metaspace", GgufRule::kRead},
    {"tokenizer.chat_template", GgufRule::kRead},
    {"tokenizer.ggml.add_bos_token", GgufRule::kRead},
    {"tokenizer.ggml.add_eos_token", GgufRule::kRead},
    {"tokenizer.ggml.add_space_prefix", GgufRule::kRead},
    {"tokenizer.ggml.bos_token_id", GgufRule::kRead},
    {"tokenizer.ggml.eom_token_id", GgufRule::kRead},
    {"tokenizer.ggml.eos_token_id", GgufRule::kRead},
    {"tokenizer.ggml.eot_token_id", GgufRule::kRead},
    {"tokenizer.ggml.fim_pad_token_id", GgufRule::kRead},
    {"tokenizer.ggml.fim_rep_token_id", GgufRule::kRead},
    {"tokenizer.ggml.fim_sep_token_id", GgufRule::kRead},
    {"tokenizer.ggml.merges", GgufRule::kRead},
    {"tokenizer.ggml.model", GgufRule::kRead},
    {"tokenizer.ggml.pre", GgufRule::kRead},
    {"tokenizer.ggml.scores", GgufRule::kRead},
    {"tokenizer.ggml.token_type", GgufRule::kRead},
    {"tokenizer.ggml.tokens", GgufRule::kRead},
    {"tokenizer.ggml.unknown_token_id", GgufRule::kRead},
    {"tokenizer.ggml.add_sep_token", GgufRule::kOnly, 0},
    {"tokenizer.ggml.normalizer.*", GgufRule::kOnly, 0},
    {"tokenizer.ggml.suppress_tokens", GgufRule::kEmpty},
    {"tokenizer.ggml.added_tokens", GgufRule::kHarmless},  // token types say the same
    {"tokenizer.ggml.cls_token_id", GgufRule::kHarmless},
    {"tokenizer.ggml.fim_mid_token_id", GgufRule::kHarmless},
    {"tokenizer.ggml.fim_pre_token_id", GgufRule::kHarmless},
    {"tokenizer.ggml.fim_suf_token_id", GgufRule::kHarmless},
    {"tokenizer.ggml.mask_token_id", GgufRule::kHarmless},
    {"tokenizer.ggml.middle_token_id", GgufRule::kHarmless},
    {"tokenizer.ggml.padding_token_id", GgufRule::kHarmless},
    {"tokenizer.ggml.precompiled_charsmap", GgufRule::kHarmless},  // only for unigram models
    {"tokenizer.ggml.prefix_token_id", GgufRule::kHarmless},
    {"tokenizer.ggml.remove_extra_whitespaces", GgufRule::kHarmless},  // only for unigram models
    {"tokenizer.ggml.seperator_token_id", GgufRule::kHarmless},        // the format's own spelling
    {"tokenizer.ggml.suffix_token_id", GgufRule::kHarmless},
    {"tokenizer.ggml.token_type_count", GgufRule::kHarmless},
    {"tokenizer.chat_template.*", GgufRule::kHarmless},  // templates other than the default
    {"tokenizer.chat_templates", GgufRule::kHarmless},
    {"tokenizer.huggingface.*", GgufRule::kHarmless},
    {"tokenizer.rwkv.*", GgufRule::kHarmless},
};

// Namespaces in which a key without a row is refused. Keys of other namespaces are bookkeeping of
// the tool that made the file ("quantize.imatrix.file"). No reader of the format uses them in its
// computation.
constexpr std::string_view kMeaningful[] = {"ARCH.", "tokenizer.", "adapter.",
                                            "clip.", "diffusion.", "xielu."};

// Matches keys against patterns: "ARCH.rope.*" matches "llama.rope.freq_base".
class Pattern {
 public:
  explicit Pattern(std::string_view architecture) : architecture_(architecture) {}

  bool fits(std::string_view pattern, std::string_view key) const {
    if (pattern.starts_with(kPlaceholder)) {
      if (!key.starts_with(architecture_)) return false;
      key.remove_prefix(architecture_.size());
      pattern.remove_prefix(kPlaceholder.size());
    }
    if (!pattern.ends_with('*')) return pattern == key;
    return key.starts_with(pattern.substr(0, pattern.size() - 1));
  }
  // Returns the part of a key after "llama."; empty if the key is not of the architecture.
  std::string_view behind(std::string_view key) const {
    if (!begins("ARCH.", key)) return {};
    return key.substr(architecture_.size() + 1);
  }
  bool begins(std::string_view prefix, std::string_view key) const {
    return fits(std::string(prefix) + "*", key);
  }

 private:
  static constexpr std::string_view kPlaceholder = "ARCH";
  std::string_view architecture_;
};

// Returns the key's value as text, or nothing if the rule allows the value.
Result<std::optional<std::string>> forbidden_value(const GgufFile& file, const GgufEntry& entry,
                                                   const GgufKeyRule& row) {
  const auto refuse = [&entry] { return std::optional<std::string>(to_string(entry)); };
  if (row.rule == GgufRule::kOnlyText) {
    PAGODA_ASSIGN_OR_RETURN(const std::string_view text, file.string(entry.key));
    if (text != row.text) return refuse();
  } else if (row.rule == GgufRule::kEmpty) {
    if (entry.num_elements != 0) return refuse();
  } else if (row.rule == GgufRule::kOnly && entry.type == GgufType::kBool) {
    PAGODA_ASSIGN_OR_RETURN(const bool value, file.boolean(entry.key));
    if (value != (row.value != 0)) return refuse();
  } else if (row.rule == GgufRule::kOnly) {
    PAGODA_ASSIGN_OR_RETURN(const double value, file.number(entry.key));
    if (value != row.value) return refuse();
  }
  return std::optional<std::string>();
}

Status check_gguf_key(const GgufFile& file, const GgufEntry& entry, const Pattern& pattern,
                      const Family& family) {
  if (family.reads_gguf(pattern.behind(entry.key))) return ok_status();
  const auto* row = std::find_if(std::begin(kKeys), std::end(kKeys), [&](const GgufKeyRule& each) {
    return pattern.fits(each.key, entry.key);
  });
  if (row == std::end(kKeys)) {
    const bool is_meaningful =
        std::any_of(std::begin(kMeaningful), std::end(kMeaningful),
                    [&](std::string_view prefix) { return pattern.begins(prefix, entry.key); });
    if (!is_meaningful) return ok_status();
    return unsupported(
        "[gguf] key {} is not supported: it is not known and may change the answer; a file without "
        "it loads",
        printable(entry.key));
  }
  PAGODA_ASSIGN_OR_RETURN(const auto value, forbidden_value(file, entry, *row));
  if (!value) return ok_status();
  return unsupported("[gguf] key {}: {} is not supported", printable(entry.key), printable(*value));
}

}  // namespace

Status check_gguf_keys(const GgufFile& file, std::string_view architecture, const Family& family) {
  const Pattern pattern(architecture);
  for (const GgufEntry& entry : file.entries()) {
    PAGODA_RETURN_IF_ERROR(check_gguf_key(file, entry, pattern, family));
  }
  return ok_status();
}

}  // namespace pagoda

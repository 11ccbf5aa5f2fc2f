#include "serving/pooling/sentence_transformers_format.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>

#include "core/json.h"
#include "core/text_file.h"
#include "model/hf/json_fields.h"
#include "model/key_rules.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModules = "modules.json";
constexpr std::size_t kMaxModules = 16;
constexpr IntegerRange kWholeNumbers = {1, std::numeric_limits<int>::max()};

constexpr HfKeyRule kModuleKeys[] = {
    {"type", HfRule::kRead},           {"path", HfRule::kRead},
    {"idx", HfRule::kHarmless},   // equals the index in the list
    {"name", HfRule::kHarmless},  // used to look up a module
    {"kwargs", HfRule::kOnly, "[[]]"},
};

constexpr HfKeyRule kTransformerKeys[] = {
    {"max_seq_length", HfRule::kRead},
    {"do_lower_case", HfRule::kOnly, "[false]"},
    {"transformer_task", HfRule::kOnly, R"(["feature-extraction"])"},
    // Models that also list a chat method apply the chat template to texts, which is not supported.
    {"modality_config", HfRule::kOnly,
     R"([{"text": {"method": "forward", "method_output_name": "last_hidden_state"}}])"},
    {"module_output_name", HfRule::kOnly, R"(["token_embeddings"])"},
    {"processing_kwargs", HfRule::kOnly, "[{}]"},
    {"query_length", HfRule::kOnly},
    {"document_length", HfRule::kOnly},
    {"query_expansion", HfRule::kOnly},
    {"model_args", HfRule::kOnly, "[{}]"},
    {"model_kwargs", HfRule::kOnly, "[{}]"},
    {"config_args", HfRule::kOnly, "[{}]"},
    {"config_kwargs", HfRule::kOnly, "[{}]"},
    {"tokenizer_args", HfRule::kOnly, "[{}]"},
    {"processor_kwargs", HfRule::kOnly, "[{}]"},
    {"unpad_inputs", HfRule::kHarmless},  // memory layout of batches
};

constexpr HfKeyRule kPoolingKeys[] = {
    {"pooling_mode", HfRule::kRead},
    {"pooling_mode_cls_token", HfRule::kRead},
    {"pooling_mode_mean_tokens", HfRule::kRead},
    {"pooling_mode_lasttoken", HfRule::kRead},
    {"pooling_mode_max_tokens", HfRule::kRead},
    {"pooling_mode_mean_sqrt_len_tokens", HfRule::kRead},
    {"pooling_mode_weightedmean_tokens", HfRule::kRead},
    {"include_prompt", HfRule::kRead},
    {"embedding_dimension", HfRule::kHarmless},  // hidden_size, which config.json has
    {"word_embedding_dimension", HfRule::kHarmless},
};

constexpr HfKeyRule kNormalizeKeys[] = {
    {"module_input_name", HfRule::kOnly, R"(["sentence_embedding"])"},
    {"module_output_name", HfRule::kOnly, R"(["sentence_embedding"])"},
};

constexpr HfKeyRule kModelKeys[] = {
    {"prompts", HfRule::kRead},
    {"default_prompt_name", HfRule::kRead},
    {"truncate_dim", HfRule::kRead},
    {"model_type", HfRule::kOnly, R"(["SentenceTransformer"])"},
    {"__version__", HfRule::kHarmless},         // versions of the packages that wrote the file
    {"requirements", HfRule::kHarmless},        // Python packages
    {"similarity_fn_name", HfRule::kHarmless},  // how a client compares two vectors
};

// A JSON file of the folder, with the name used in messages.
struct JsonFile {
  std::string name;
  nlohmann::json json;

  JsonFields fields() const { return JsonFields(json, name); }
};

// Returns an empty object if the file does not exist.
Result<JsonFile> read_if_there(const fs::path& folder, const fs::path& file) {
  JsonFile read = {.name = file.string(), .json = nlohmann::json::object()};
  const Result<std::string> text = read_text_file(folder / file);
  if (text.status().code() == StatusCode::kNotFound) return read;
  if (!text.ok()) return text.status();
  PAGODA_ASSIGN_OR_RETURN(read.json, parse_json_object(*text, read.name));
  return read;
}

Result<JsonFile> read_checked(const fs::path& folder, const fs::path& file,
                              std::span<const HfKeyRule> keys) {
  PAGODA_ASSIGN_OR_RETURN(JsonFile read, read_if_there(folder, file));
  PAGODA_RETURN_IF_ERROR(check_keys(read.fields(), keys));
  return read;
}

// A pooling's name, and its key in older files.
struct PoolingName {
  std::string_view name;
  const char* key;
  std::optional<Pooling> pooling;  // absent: not supported
};

constexpr PoolingName kPoolingNames[] = {
    {"cls", "pooling_mode_cls_token", Pooling::kFirst},
    {"mean", "pooling_mode_mean_tokens", Pooling::kMean},
    {"lasttoken", "pooling_mode_lasttoken", Pooling::kLast},
    {"max", "pooling_mode_max_tokens", {}},
    {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", {}},
    {"weightedmean", "pooling_mode_weightedmean_tokens", {}},
};

Result<Pooling> named_pooling(std::string_view name, const std::string& where) {
  const auto* const found = std::ranges::find(kPoolingNames, name, &PoolingName::name);
  if (found != std::end(kPoolingNames) && found->pooling) return *found->pooling;
  return unsupported("[embedding] {}: the pooling {} is not supported; cls, mean and lasttoken are",
                     where, printable(name));
}

// Reads the pooling. Older files have a flag for each pooling, newer files have its name.
Result<Pooling> parse_pooling(const JsonFields& fields) {
  if (fields.has("pooling_mode")) {
    PAGODA_ASSIGN_OR_RETURN(const std::string name, fields.text("pooling_mode"));
    return named_pooling(name, fields.where());
  }
  std::string names;
  for (const PoolingName& each : kPoolingNames) {
    PAGODA_ASSIGN_OR_RETURN(const bool is_asked, fields.boolean_or(each.key, false));
    if (is_asked) names += (names.empty() ? "" : "+") + std::string(each.name);
  }
  // Files without flags are older still, and use the mean.
  return names.empty() ? Pooling::kMean : named_pooling(names, fields.where());
}

class FormatReader {
 public:
  explicit FormatReader(const fs::path& folder) : folder_(folder) { format_.normalizes = false; }

  // Reads the format. `modules`: the modules that process a text in order: a transformer, a
  // pooling, possibly a normalization.
  Result<EmbeddingFormat> read(const nlohmann::json& modules) {
    for (const nlohmann::json& module : modules) {
      if (!module.is_object())
        return data_loss("[embedding] {}: expected objects in the list", kModules);
      PAGODA_RETURN_IF_ERROR(read_module(JsonFields(module, std::string(kModules))));
    }
    PAGODA_RETURN_IF_ERROR(read_model_keys());
    PAGODA_RETURN_IF_ERROR(check_prompts());
    return std::move(format_);
  }

 private:
  Status read_module(const JsonFields& fields) {
    PAGODA_RETURN_IF_ERROR(check_keys(fields, kModuleKeys));
    PAGODA_ASSIGN_OR_RETURN(const std::string type, fields.text("type"));
    PAGODA_ASSIGN_OR_RETURN(const std::string path, fields.text_or("path", ""));
    const fs::path subfolder = fs::path(path).lexically_normal();
    if (subfolder.is_absolute() || subfolder.string().starts_with(".."))
      return data_loss("[embedding] {}: path: expected a folder of the checkpoint's, got {}",
                       kModules, printable(path));
    const std::string name = type.substr(type.rfind('.') + 1);
    if (name == "Transformer") return read_transformer(path);
    if (name == "Pooling") return read_pooling(subfolder / "config.json");
    if (name == "Normalize") {
      format_.normalizes = true;
      return read_checked(folder_, subfolder / "config.json", kNormalizeKeys).status();
    }
    return unsupported(
        "[embedding] {}: the module {} is not supported; Transformer, Pooling and Normalize are",
        kModules, printable(type));
  }

  Status read_transformer(const std::string& path) {
    if (!path.empty() && path != ".")
      return unsupported(
          "[embedding] {}: a Transformer in the folder {} is not supported; one beside {} is",
          kModules, printable(path), kModules);
    PAGODA_ASSIGN_OR_RETURN(const JsonFile file,
                            read_checked(folder_, "sentence_bert_config.json", kTransformerKeys));
    if (file.fields().has("max_seq_length")) {
      PAGODA_ASSIGN_OR_RETURN(format_.max_tokens,
                              file.fields().integer("max_seq_length", kWholeNumbers));
      return ok_status();
    }
    return read_tokenizer_length();
  }

  // Reads the length from tokenizer_config.json. Tokenizers without a limit have a huge number
  // there, which is ignored.
  Status read_tokenizer_length() {
    PAGODA_ASSIGN_OR_RETURN(const JsonFile file, read_if_there(folder_, "tokenizer_config.json"));
    constexpr const char* kLength = "model_max_length";
    const nlohmann::json* const length = file.fields().find(kLength);
    if (length == nullptr ||
        (length->is_number() && length->get<double>() > static_cast<double>(kWholeNumbers.max)))
      return ok_status();
    PAGODA_ASSIGN_OR_RETURN(format_.max_tokens, file.fields().integer(kLength, kWholeNumbers));
    return ok_status();
  }

  Status read_pooling(const fs::path& path) {
    if (std::error_code error; !fs::exists(folder_ / path, error))
      return not_found("[embedding] {}: no such file", path.string());
    PAGODA_ASSIGN_OR_RETURN(const JsonFile file, read_checked(folder_, path, kPoolingKeys));
    PAGODA_ASSIGN_OR_RETURN(format_.pooling, parse_pooling(file.fields()));
    PAGODA_ASSIGN_OR_RETURN(const bool includes, file.fields().boolean_or("include_prompt", true));
    if (!includes) leaves_prompts_out_ = file.name;
    return ok_status();
  }

  Status read_model_keys() {
    PAGODA_ASSIGN_OR_RETURN(const JsonFile file,
                            read_checked(folder_, "config_sentence_transformers.json", kModelKeys));
    const JsonFields fields = file.fields();
    if (fields.has("truncate_dim")) {
      PAGODA_ASSIGN_OR_RETURN(format_.dimensions, fields.integer("truncate_dim", kWholeNumbers));
    }
    if (fields.has("prompts")) {
      PAGODA_ASSIGN_OR_RETURN(const JsonFields prompts, fields.object("prompts"));
      for (const auto& [name, value] : prompts.json().items()) {
        PAGODA_ASSIGN_OR_RETURN(format_.prompts[name], prompts.text_or(name.c_str(), ""));
      }
    }
    PAGODA_ASSIGN_OR_RETURN(const std::string name, fields.text_or("default_prompt_name", ""));
    if (name.empty()) return ok_status();
    const auto found = format_.prompts.find(name);
    if (found == format_.prompts.end())
      return data_loss("[embedding] {}: default_prompt_name: {} is none of the prompts",
                       fields.where(), printable(name));
    format_.default_prompt = found->second;
    return ok_status();
  }

  Status check_prompts() const {
    const bool has_text = std::ranges::any_of(
        format_.prompts, [](const auto& prompt) { return !prompt.second.empty(); });
    // Pooling of the last token never includes a prompt.
    if (leaves_prompts_out_.empty() || !has_text || format_.pooling == Pooling::kLast)
      return ok_status();
    return unsupported("[embedding] {}: include_prompt false is not supported beside prompts",
                       leaves_prompts_out_);
  }

  const fs::path& folder_;
  EmbeddingFormat format_;
  std::string leaves_prompts_out_;  // the file with include_prompt false; empty: none
};

}  // namespace

Result<std::optional<EmbeddingFormat>> read_sentence_transformers_format(const fs::path& folder) {
  const Result<std::string> text = read_text_file(folder / kModules);
  if (text.status().code() == StatusCode::kNotFound) return std::optional<EmbeddingFormat>();
  if (!text.ok()) return text.status();
  const auto modules = parse_json(*text);
  if (!modules.is_array() || modules.size() > kMaxModules)
    return data_loss("[embedding] {}: expected a list of at most {} modules", kModules,
                     kMaxModules);
  PAGODA_ASSIGN_OR_RETURN(EmbeddingFormat format, FormatReader(folder).read(modules));
  return std::optional(std::move(format));
}

}  // namespace pagoda

#include "serving/pooling/read_score_format.h"

#include <filesystem>

#include "core/json.h"
#include "core/text_file.h"
#include "model/hf/json_fields.h"
#include "model/score_head.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

using ScoreActivation = ScoreFormat::Activation;

constexpr std::string_view kConfigFile = "config.json";

// Reads the function that is applied to the single class's logit, from the keys of
// sentence-transformers' CrossEncoder.
Result<ScoreActivation> read_hf_activation(const std::filesystem::path& folder) {
  PAGODA_ASSIGN_OR_RETURN(const std::string text, read_text_file(folder / kConfigFile));
  PAGODA_ASSIGN_OR_RETURN(const nlohmann::json json,
                          parse_json_object(text, std::string(kConfigFile)));
  const JsonFields fields(json, std::string(kConfigFile));
  std::string name;
  if (fields.has("sentence_transformers")) {
    PAGODA_ASSIGN_OR_RETURN(const JsonFields own, fields.object("sentence_transformers"));
    PAGODA_ASSIGN_OR_RETURN(name, own.text_or("activation_fn", ""));
  }
  if (name.empty()) {
    PAGODA_ASSIGN_OR_RETURN(name, fields.text_or("sbert_ce_default_activation_function", ""));
  }
  if (name.empty() || name.ends_with(".Sigmoid")) return ScoreActivation::kSigmoid;
  if (name.ends_with(".Identity")) return ScoreActivation::kNone;
  return unsupported("[score] {}: the activation {} is not supported; Sigmoid and Identity are",
                     kConfigFile, printable(name));
}

Result<std::string> read_gguf_prompt(const GgufFile& file) {
  PAGODA_ASSIGN_OR_RETURN(const std::string_view prompt,
                          file.string_or("tokenizer.chat_template.rerank", ""));
  const bool is_whole = prompt.find(kQueryPlace) != std::string_view::npos &&
                        prompt.find(kDocumentPlace) != std::string_view::npos;
  if (prompt.empty() || is_whole) return std::string(prompt);
  return unsupported("[score] tokenizer.chat_template.rerank: expected {} and {} in it",
                     kQueryPlace, kDocumentPlace);
}

}  // namespace

Result<std::optional<ScoreFormat>> read_score_format(const Checkpoint& checkpoint,
                                                     const ModelConfig& config) {
  if (!config.has_score_head) return std::optional<ScoreFormat>();
  PAGODA_ASSIGN_OR_RETURN(ScoreHead head, read_score_head(checkpoint, config));
  ScoreFormat format;
  int num_classes = 1;
  if (const GgufFile* const file = checkpoint.gguf()) {
    // The head of rerankers that answer "yes" or "no" has these two words' rows of the output
    // matrix.
    if (head.num_classes == 2) {
      num_classes = 2;
      format.activation = ScoreActivation::kSoftmax;
    }
    PAGODA_ASSIGN_OR_RETURN(format.prompt, read_gguf_prompt(*file));
  } else {
    PAGODA_ASSIGN_OR_RETURN(format.activation, read_hf_activation(checkpoint.folder()));
  }
  if (head.num_classes != num_classes)
    return unsupported("[score] score.weight: a head of one class is supported, got {}",
                       head.num_classes);
  format.weights = std::move(head.weights);
  return std::optional(std::move(format));
}

}  // namespace pagoda

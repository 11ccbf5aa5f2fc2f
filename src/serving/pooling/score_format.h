// How a checkpoint scores a pair of texts, a query and a document. The score head is that of
// Hugging Face's ...ForSequenceClassification with one class, or that of a GGUF file for reranking.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda {

// Placeholders in a prompt for the two texts of a pair.
inline constexpr std::string_view kQueryPlace = "{query}", kDocumentPlace = "{document}";

struct ScoreFormat {
  enum class Activation {
    kSigmoid,  // sigmoid of the single class's logit
    kSoftmax,  // over the logits of "yes" and "no": the probability of "yes"
    kNone,     // the single class's logit itself
  };

  std::vector<float> weights;  // [classes, hidden]
  Activation activation = Activation::kSigmoid;
  // A prompt with {query} and {document}, which a pair replaces; empty: the tokenizer joins the
  // texts.
  std::string prompt;

  // Returns the score from the hidden state of a pair's last token; [hidden]. Thread-safe.
  double score(std::span<const float> last_hidden) const;
};

// Replaces the placeholders in a ScoreFormat's prompt by a pair. A placeholder inside one of the
// texts is not replaced.
std::string scored_prompt(std::string_view prompt, std::string_view query,
                          std::string_view document);

}  // namespace pagoda

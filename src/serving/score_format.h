// How a checkpoint scores a pair of texts, a query and a document: the head of one class that
// Hugging Face's ...ForSequenceClassification has, or the one that a GGUF file for reranking has.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda {

// Places in a prompt for the two texts of a pair.
inline constexpr std::string_view kQueryPlace = "{query}", kDocumentPlace = "{document}";

struct ScoreFormat {
  enum class Activation {
    kSigmoid,  // of the one class
    kSoftmax,  // over two classes, "yes" and "no": the first one's share
    kNone,     // the one class's logit as it is
  };

  std::vector<float> weights;  // [classes, hidden]
  Activation activation = Activation::kSigmoid;
  // A text with {query} and {document} in it, as which pairs are read; empty: as the tokenizer puts
  // pairs together.
  std::string prompt;

  // Returns the score of what a pair's last token ends as; [hidden]. Thread-safe.
  double score(std::span<const float> last_hidden) const;
};

// Fills a pair into a prompt of ScoreFormat's. A text that holds a placeholder of the other one
// stays as it is.
std::string scored_prompt(std::string_view prompt, std::string_view query,
                          std::string_view document);

}  // namespace pagoda

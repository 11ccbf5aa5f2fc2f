#include "serving/embedding_format.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "serving/sentence_transformers_format.h"

namespace pagoda {
namespace {

// ggml's numbers are the places in the list; 0 says nothing.
constexpr Pooling kGgufPoolings[] = {Pooling::kNone, Pooling::kMean, Pooling::kFirst,
                                     Pooling::kLast};

}  // namespace

std::uint32_t gguf_pooling_type(Pooling pooling) {
  return static_cast<std::uint32_t>(std::ranges::find(kGgufPoolings, pooling) -
                                    std::begin(kGgufPoolings));
}

Result<std::optional<EmbeddingFormat>> read_embedding_format(const Checkpoint& checkpoint) {
  if (const GgufFile* const file = checkpoint.gguf()) {
    PAGODA_ASSIGN_OR_RETURN(const std::string_view architecture,
                            file->string("general.architecture"));
    const std::string key = std::string(architecture) + ".pooling_type";
    PAGODA_ASSIGN_OR_RETURN(const std::int64_t type, file->integer_or(key, 0));
    // The head of a reranker (serving/read_score_format.h) is read instead.
    constexpr std::int64_t kRank = 4;
    if (type == 0 || type == kRank) return std::optional<EmbeddingFormat>();
    if (type < 0 || type >= std::ssize(kGgufPoolings))
      return unsupported("[embedding] {}: {} is not supported", key, type);
    return std::optional(EmbeddingFormat{.pooling = kGgufPoolings[type]});
  }
  return read_sentence_transformers_format(checkpoint.folder());
}

}  // namespace pagoda

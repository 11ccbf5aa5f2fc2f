#include "serving/pooling/embedding_format.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "serving/pooling/sentence_transformers_format.h"

namespace pagoda {
namespace {

// The index in the list is ggml's number; 0 means that the pooling is not given.
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
    // A reranker has a score head, which is read instead (serving/pooling/read_score_format.h).
    constexpr std::int64_t kRank = 4;
    if (type == 0 || type == kRank) return std::optional<EmbeddingFormat>();
    if (type < 0 || type >= std::ssize(kGgufPoolings))
      return unsupported("[embedding] {}: {} is not supported", key, type);
    return std::optional(EmbeddingFormat{.pooling = kGgufPoolings[type]});
  }
  return read_sentence_transformers_format(checkpoint.folder());
}

}  // namespace pagoda

// Reads an EmbeddingFormat from sentence-transformers' files beside the weights: modules.json, the
// modules' own files, sentence_bert_config.json and config_sentence_transformers.json.
#pragma once

#include <filesystem>
#include <optional>

#include "core/status.h"
#include "serving/pooling/embedding_format.h"

namespace pagoda {

// Returns nothing if the folder has no modules.json. Without it sentence-transformers reads none of
// the other files either. Errors are those of read_embedding_format().
Result<std::optional<EmbeddingFormat>> read_sentence_transformers_format(
    const std::filesystem::path& folder);

}  // namespace pagoda

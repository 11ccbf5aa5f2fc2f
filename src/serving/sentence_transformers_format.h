// EmbeddingFormat from the files that sentence-transformers keeps in a folder beside the weights:
// modules.json and the modules' own, sentence_bert_config.json, config_sentence_transformers.json.
#pragma once

#include <filesystem>
#include <optional>

#include "core/status.h"
#include "serving/embedding_format.h"

namespace pagoda {

// Returns nothing where the folder has no modules.json, without which sentence-transformers reads
// none of the other files either. Errors as in read_embedding_format().
Result<std::optional<EmbeddingFormat>> read_sentence_transformers_format(
    const std::filesystem::path& folder);

}  // namespace pagoda

// Converts a GGUF file's tokenizer keys to the struct that text/ reads.
#pragma once

#include "core/status.h"
#include "text/gguf_vocabulary.h"
#include "weights/gguf.h"

namespace pagoda {

// Reads the keys of the tokenizer. kDataLoss or kNotFound names a key that is missing or has
// another type, or the merges if a vocabulary without them would give wrong tokens. A missing
// tokenizer.ggml.pre is logged as a warning. Tokenizer::from_gguf checks the values.
Result<GgufVocabulary> read_gguf_vocabulary(const GgufFile& file);

}  // namespace pagoda

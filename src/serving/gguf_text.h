// A GGUF file's tokenizer keys as text/ wants them.
#pragma once

#include "core/status.h"
#include "text/gguf_vocabulary.h"
#include "weights/gguf.h"

namespace pagoda {

// Reads the keys of the tokenizer. kDataLoss or kNotFound names the key: one that is missing, of
// another type, or, of the merges, without which the tokens would be others. Without
// tokenizer.ggml.pre a warning is logged. What the keys mean is checked by the tokenizer.
Result<GgufVocabulary> read_gguf_vocabulary(const GgufFile& file);

}  // namespace pagoda

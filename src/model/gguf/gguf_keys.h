// The fate of each metadata key of a GGUF file: it is read, harmless, or refused by name. A key of
// the architecture that nobody has thought about may change what the model computes, so it is
// refused too.
#pragma once

#include <string_view>

#include "core/status.h"
#include "model/family.h"
#include "weights/gguf.h"

namespace pagoda {

// Checks every key of a file. kUnsupported names a key that would change the answer, or one that
// nobody knows of the architecture's, the tokenizer's or another namespace that means something;
// the others are their makers' bookkeeping. kDataLoss names one of a wrong type.
Status check_gguf_keys(const GgufFile& file, std::string_view architecture, const Family& family);

}  // namespace pagoda

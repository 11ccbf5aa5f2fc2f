// The fate of each metadata key of a GGUF file: it is read, harmless, or refused by name. An
// unknown key of the architecture may change what the model computes, so it is refused too.
#pragma once

#include <string_view>

#include "core/status.h"
#include "model/family.h"
#include "weights/gguf.h"

namespace pagoda {

// Checks every key of a file. kUnsupported names a key that would change the answer. It also names
// an unknown key of the architecture, the tokenizer or another namespace that means something.
// Unknown keys of other namespaces are their makers' bookkeeping and pass. kDataLoss names one of a
// wrong type.
Status check_gguf_keys(const GgufFile& file, std::string_view architecture, const Family& family);

}  // namespace pagoda

// The handling of each metadata key of a GGUF file: read, harmless, or refused by name. An unknown
// key of the architecture may change what the model computes, so it is refused too.
#pragma once

#include <string_view>

#include "core/status.h"
#include "model/family.h"
#include "weights/gguf.h"

namespace pagoda {

// Checks every key of a file. kUnsupported names a key that would change the answer. It also names
// an unknown key in a namespace that affects the computation, such as the architecture's or the
// tokenizer's. Unknown keys of other namespaces pass. kDataLoss names a key of a wrong type.
Status check_gguf_keys(const GgufFile& file, std::string_view architecture, const Family& family);

}  // namespace pagoda

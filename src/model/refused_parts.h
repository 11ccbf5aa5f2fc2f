// The unsupported parts of a checkpoint of an unknown architecture. They are listed in the error
// message, beside the architecture's name.
#pragma once

#include <string>
#include <string_view>

#include "core/json.h"
#include "weights/gguf.h"

namespace pagoda {

// Returns " with experts and recurrent states", from the keys of config.json and of its
// text_config; empty if no key shows such a part.
std::string refused_parts(const nlohmann::json& config);

// Returns the same from the keys of a GGUF file's architecture.
std::string refused_parts(const GgufFile& file, std::string_view architecture);

}  // namespace pagoda

// Parts of a checkpoint of an unknown architecture that nothing here computes, so that a refusal says
// more than a name.
#pragma once

#include <string>
#include <string_view>

#include "core/json.h"
#include "weights/gguf.h"

namespace pagoda {

// Returns " with experts and recurrent states", by the keys of config.json and of its text_config;
// empty where no key tells.
std::string refused_parts(const nlohmann::json& config);

// Returns the same by a GGUF file's keys of its architecture.
std::string refused_parts(const GgufFile& file, std::string_view architecture);

}  // namespace pagoda

// Messages as chat templates know them, made of what the APIs take.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "server/base/request_json.h"

namespace pagoda {

// The names of an assistant's thought. Templates get both, since each reads one of them.
inline constexpr std::array<std::string_view, 2> kThoughtNames = {"reasoning_content", "reasoning"};

// Returns checked messages as JSON text. OpenAI's older calls of functions and calls of custom tools
// become calls of functions. A message that needs no change stays as it was sent.
std::string messages_for_templates(const RequestJson& messages);

}  // namespace pagoda

// Prompts as requests bring them: texts or token ids, one or a list of them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "server/api_error.h"
#include "server/field_reader.h"
#include "server/request_json.h"

namespace pagoda {

// Text, or token ids that are taken as they are.
using PromptInput = std::variant<std::string, std::vector<int>>;

// Reads the field `name`: a text, a list of token ids, or a list of up to `most` of those.
std::optional<ApiError> read_prompts(std::string_view name, const RequestJson& value,
                                     std::size_t most, std::vector<PromptInput>& prompts);
// Returns the JSON Schema of what read_prompts() takes, as JSON text.
std::string prompts_schema(std::size_t most);

// Returns vLLM's field `add_special_tokens`.
Field add_special_tokens_field(bool& add_special_tokens);

}  // namespace pagoda

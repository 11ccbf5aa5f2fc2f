// Prompts as requests bring them: texts or token ids, one or a list of them.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
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

// Returns vLLM's field `truncate_prompt_tokens`: how many tokens stay, or -1: as many as the context
// has. check_truncation() and add_truncation_rule() refuse 0, which no range does.
Field truncation_field(std::optional<int>& most, std::string_view description);
std::optional<ApiError> check_truncation(std::optional<int> most);
void add_truncation_rule(nlohmann::json& schema);

// Appends the names that clients give themselves and their requests, which change nothing.
void add_names_of_requests(std::vector<Field>& table);

// Returns vLLM's field `add_special_tokens`.
Field add_special_tokens_field(bool& add_special_tokens);

}  // namespace pagoda

// Fields of prompts: texts or token ids, one or a list of them.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/api_error.h"
#include "server/base/request_json.h"
#include "server/fields/field_reader.h"
#include "serving/prompt_input.h"

namespace pagoda {

// The most token ids in a list. No body holds more.
inline constexpr std::size_t kMaxPromptTokens = 16 << 20;

// Reads the field `name`: a text, a list of token ids, or a list of up to `most` texts and lists.
std::optional<ApiError> read_prompts(std::string_view name, const RequestJson& value,
                                     std::size_t most, std::vector<PromptInput>& prompts);
// Returns the JSON Schema of what read_prompts() takes, as JSON text.
std::string prompts_schema(std::size_t most);

// Returns vLLM's field `truncate_prompt_tokens`: the number of tokens that stay; -1: as many as the
// context has. No range excludes 0, so check_truncation() and add_truncation_rule() refuse it.
Field truncation_field(std::optional<int>& most, std::string_view description);
// Returns the same field for prompts that are answered: resolve_answered_cut() says what -1 leaves.
Field answered_truncation_field(std::optional<int>& most);
std::optional<ApiError> check_truncation(std::optional<int> most);
void add_truncation_rule(nlohmann::json& schema);

// Appends fields that name a client or a request. They are ignored.
void add_names_of_requests(std::vector<Field>& table);

// Returns vLLM's field `add_special_tokens`.
Field add_special_tokens_field(bool& add_special_tokens);

}  // namespace pagoda

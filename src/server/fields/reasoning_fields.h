// Fields that say how a model is to think, and how answers show its thoughts: reasoning_effort
// (OpenAI's), include_reasoning (vLLM's), separate_reasoning, enable_thinking and thinking
// (SGLang's), reasoning_format (llama.cpp's), thinking_token_budget (vLLM's), think (Ollama's).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "server/fields/field_reader.h"

namespace pagoda {

struct ReasoningFields {
  std::string effort;  // "": the template's default
  std::optional<bool> enable_thinking;
  bool is_included = true;          // false: thoughts are left out of the answer
  std::optional<int> token_budget;  // most tokens of a thought; none, or -1: no limit
  bool is_separate = true;  // false: thoughts stay in the content, where the model writes them
};

// Reads a reasoning effort. `name`: its place in the request.
std::optional<ApiError> read_effort(std::string_view name, const RequestJson& value,
                                    ReasoningFields& fields);
// Returns the fields, which point into `fields`: it must outlive the result.
std::vector<Field> reasoning_field_table(ReasoningFields& fields);

// Adds the fields to a template's variables, a JSON object: reasoning_effort, and enable_thinking
// under both of its names. A variable that is already there stays.
std::string add_reasoning_variables(const ReasoningFields& fields, const std::string& kwargs_json);

}  // namespace pagoda

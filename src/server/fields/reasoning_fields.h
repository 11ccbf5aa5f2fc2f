// Fields that say how a model is to think, and how its thoughts are told: reasoning_effort
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
  std::string effort;  // "": as the template has it
  std::optional<bool> enable_thinking;
  bool is_included = true;          // otherwise thoughts are left out of the answer
  std::optional<int> token_budget;  // of a thought; none, or -1: as long as it gets
  bool is_separate = true;  // otherwise they stay where the model writes them, in the content
};

// Reads an effort, which stands at `name`.
std::optional<ApiError> read_effort(std::string_view name, const RequestJson& value,
                                    ReasoningFields& fields);
// Returns the fields, which point into `fields`: it must outlive the result.
std::vector<Field> reasoning_field_table(ReasoningFields& fields);

// Adds to a template's variables, a JSON object, what the fields say: reasoning_effort, and
// enable_thinking with thinking, its other name. A variable that is there stays.
std::string add_reasoning_variables(const ReasoningFields& fields, const std::string& kwargs_json);

}  // namespace pagoda

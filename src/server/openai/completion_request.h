// POST /v1/completions: its fields.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/fields/generation_fields.h"
#include "server/fields/prompt_fields.h"

namespace pagoda {

inline constexpr int kMaxPrompts = 1024;
inline constexpr int kMaxChoices = 4096;  // the most choices: prompts times n
inline constexpr int kDefaultCompletionTokens = 16;

struct CompletionRequest {
  GenerationFields generation;
  std::vector<PromptInput> prompts;
  std::string suffix;  // text after the answer, which fills the gap; "": none
  std::optional<int> logprobs;
  bool add_special_tokens = true;
  std::optional<int> truncate_prompt_tokens;  // -1: as many as leave room for max_tokens
};

// Returns the fields, which point into `request`: it must outlive the result.
std::vector<Field> completion_field_table(CompletionRequest& request);
nlohmann::json completion_request_schema();

ApiResult<CompletionRequest> read_completion_request(const std::string& body,
                                                     std::vector<std::string>& unknown_names);

}  // namespace pagoda

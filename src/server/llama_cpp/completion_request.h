// The body of /completion, under llama.cpp's names.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "server/llama_cpp/llama_cpp_fields.h"
#include "serving/prompt_input.h"

namespace pagoda {

struct LlamaCppCompletionRequest {
  LlamaCppFields fields;
  std::vector<PromptInput> prompts;  // one
};

ApiResult<LlamaCppCompletionRequest> read_llama_cpp_completion(
    const std::string& body, std::vector<std::string>& unknown_names);
nlohmann::json llama_cpp_completion_schema();

}  // namespace pagoda

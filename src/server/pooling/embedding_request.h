// POST /v1/embeddings: its fields.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/base/api_error.h"
#include "server/fields/field_reader.h"
#include "server/fields/prompt_fields.h"

namespace pagoda {

inline constexpr int kMaxInputs = 2048;  // OpenAI's bound

struct EmbeddingRequest {
  std::string model;
  std::vector<PromptInput> inputs;
  bool is_base64 = false;
  std::optional<int> dimensions;
  std::optional<std::string> prompt_name;
  std::optional<int> truncate_prompt_tokens;  // -1: to the context's length
  bool add_special_tokens = true;
  int priority = 0;
  std::string cache_salt;
};

// Returns the fields, which point into `request`: it must outlive the result.
std::vector<Field> embedding_field_table(EmbeddingRequest& request);
nlohmann::json embedding_request_schema();
// Returns the field `dimensions`, whose upper bound only the served model knows.
Field dimensions_field(std::optional<int>& dimensions, std::string_view from);

ApiResult<EmbeddingRequest> read_embedding_request(const std::string& body,
                                                   std::vector<std::string>& unknown_names);

}  // namespace pagoda

// POST /v1/score and /v1/rerank: their fields, as vLLM, Jina and Cohere have them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "server/base/api_error.h"
#include "server/fields/field_reader.h"

namespace pagoda {

inline constexpr std::size_t kMaxScoredTexts = 2048;  // texts in one list

// The fields that both requests have.
struct ScoredTexts {
  std::string model;
  std::optional<int> truncate_prompt_tokens;  // -1: to the context's length
  int priority = 0;
  std::string cache_salt;
};

struct ScoreRequest {
  ScoredTexts common;
  // Two lists of texts, paired one by one; or one text in `firsts`, paired with each of `seconds`.
  // Neither list is empty.
  std::vector<std::string> firsts, seconds;
};

struct RerankRequest {
  ScoredTexts common;
  std::string query;
  std::vector<std::string> documents;  // at least one
  std::optional<int> top_n;            // absent: all
  bool return_documents = true;
};

// Returns the fields, which point into `request`: it must outlive the result.
std::vector<Field> score_field_table(ScoreRequest& request);
std::vector<Field> rerank_field_table(RerankRequest& request);
nlohmann::json score_request_schema();
nlohmann::json rerank_request_schema();

ApiResult<ScoreRequest> read_score_request(const std::string& body,
                                           std::vector<std::string>& unknown_names);
ApiResult<RerankRequest> read_rerank_request(const std::string& body,
                                             std::vector<std::string>& unknown_names);

}  // namespace pagoda

// InfillRequest: the body of /infill, with which editors ask for the text at a cursor. Names and
// meanings are llama.cpp's.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "server/llama_cpp/llama_cpp_fields.h"
#include "serving/prompt_input.h"

namespace pagoda {

inline constexpr std::size_t kMaxInfillFiles = 1024;

struct InfillRequest {
  LlamaCppFields fields;
  CursorTexts texts;  // their prefix is `input_prefix` followed by `prompt`
};

ApiResult<InfillRequest> read_infill_request(const std::string& body,
                                             std::vector<std::string>& unknown_names);
nlohmann::json infill_request_schema();

}  // namespace pagoda

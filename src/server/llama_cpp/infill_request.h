// InfillRequest: the body of /infill, with which editors ask for the text at a cursor. Names and
// meanings are llama.cpp's.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "server/fields/generation_fields.h"
#include "serving/prompt_input.h"

namespace pagoda {

inline constexpr std::size_t kMaxInfillFiles = 1024;

struct InfillRequest {
  GenerationFields generation;
  CursorTexts texts;  // their prefix is `input_prefix` followed by `prompt`
  // Paths of the fields that the answer is to have, such as "timings/prompt_ms"; empty: all.
  std::vector<std::string> response_fields;

  // Returns whether no answer is wanted: the prompt is only computed, and stays in the prefix
  // cache.
  bool only_reads() const { return generation.n_predict == 0; }
};

ApiResult<InfillRequest> read_infill_request(const std::string& body,
                                             std::vector<std::string>& unknown_names);
nlohmann::json infill_request_schema();

}  // namespace pagoda

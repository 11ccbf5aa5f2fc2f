// The fields that llama.cpp's /completion and /infill share, under its names.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "server/fields/generation_fields.h"

namespace pagoda {

struct LlamaCppFields {
  GenerationFields generation;
  // Paths of the fields that the answer is to have, such as "timings/prompt_ms"; empty: all.
  std::vector<std::string> response_fields;
  int num_probs = 0;  // how many of the likeliest tokens are shown for each token
  bool returns_tokens = false;
  bool times_parts = false;  // each part of a stream has the figures so far

  // Returns whether no answer is wanted: the prompt is only computed, and stays in the prefix
  // cache.
  bool only_reads() const { return generation.n_predict == 0; }
};

// Returns the fields, which point into `fields`: it must outlive the result.
std::vector<Field> llama_cpp_field_table(LlamaCppFields& fields);
// Reads a body by a table that includes the fields of `fields`. Errors: as for
// read_generation_body().
std::optional<ApiError> read_llama_cpp_body(const std::string& body,
                                            const std::vector<Field>& table, LlamaCppFields& fields,
                                            std::vector<std::string>& unknown_names);

}  // namespace pagoda

// response_format (OpenAI's) and structured_outputs (vLLM's): what an answer is held to.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/api_error.h"
#include "server/field_reader.h"
#include "text/grammar.h"

namespace pagoda {

// A grammar that a request asks for, and the field that asks.
struct GrammarRequest {
  GrammarSpec spec;
  std::string param;
};

// Both fields, as every other one in the table; `is_there` is set where one of them is.
std::vector<Field> grammar_field_table(bool& is_there);

// body: a JSON object with one of the two fields. It is read once more, because a schema's
// properties are answered in the order that they have there, which a table's values have lost.
std::optional<ApiError> read_grammar_fields(const std::string& body,
                                            std::optional<GrammarRequest>& grammar);

}  // namespace pagoda

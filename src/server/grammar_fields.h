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

// Both fields, of which one at most may ask for something. Pointers to `grammar`, which must
// outlive the result. The text of a schema keeps the client's order of keys, because properties are
// answered in it.
std::vector<Field> grammar_field_table(std::optional<GrammarRequest>& grammar);

}  // namespace pagoda

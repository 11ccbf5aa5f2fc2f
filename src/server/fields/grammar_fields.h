// Fields that constrain an answer by a grammar: response_format (OpenAI's), structured_outputs and
// guided_* (vLLM's), grammar and json_schema (llama.cpp's), regex and ebnf (SGLang's), format
// (Ollama's).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/base/api_error.h"
#include "server/fields/field_reader.h"
#include "text/grammar.h"

namespace pagoda {

// OpenAI's field, in chats.
inline constexpr std::string_view kResponseFormat = "response_format";

inline constexpr std::size_t kMaxGrammarChoices = 1024;  // texts that an answer may be one of

// GrammarSpec's white space, and the field that sets it.
struct WhiteSpaceRequest {
  std::string pattern;
  std::string param;
};

// The constraint that the fields state together. The white space is for a grammar of JSON, wherever
// it comes from.
struct GrammarFields {
  std::optional<GrammarRequest> grammar;
  std::optional<WhiteSpaceRequest> white_space;
};

// Reads OpenAI's response_format alone.
std::optional<ApiError> read_response_format(const RequestJson& format, GrammarFields& fields);

// Returns these fields, of which one at most may ask for a grammar. Pointers to `fields`, which
// must outlive the result. The text of a schema keeps the client's order of keys, because
// properties are answered in it.
std::vector<Field> grammar_field_table(GrammarFields& fields);

}  // namespace pagoda

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

inline constexpr std::size_t kMaxGrammarChoices = 1024;  // texts in a choice

// The pattern of white space in JSON, and the field that sets it.
struct WhiteSpaceRequest {
  std::string pattern;
  std::string param;
};

// The constraint that all fields express together. `white_space` applies to any JSON grammar.
struct GrammarFields {
  std::optional<GrammarRequest> grammar;
  std::optional<WhiteSpaceRequest> white_space;
};

// The place of a format in a request: the field that errors name, and the path to it.
struct FormatPlace {
  std::string_view param;  // "text"
  std::string_view path;   // "text.format"
};

// Reads what OpenAI's response_format asks for at another place, as in /v1/responses and
// /v1/messages.
std::optional<ApiError> read_format_at(const FormatPlace& place, const RequestJson& format,
                                       GrammarFields& fields);

// Returns these fields, which point into `fields`: it must outlive the result. At most one of them
// may ask for a grammar. A schema's text keeps the client's order of keys, because answers have
// their properties in this order.
std::vector<Field> grammar_field_table(GrammarFields& fields);

}  // namespace pagoda

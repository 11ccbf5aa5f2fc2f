// Names of request fields that other servers know and that have no part in an answer here:
// OpenAI's, vLLM's, SGLang's, llama.cpp's and Ollama's. A field that would change an answer there
// is refused by name: no client shall take another answer for the one that it asked for. OpenAI's
// fields that never would are accepted.
//
// Names that are done are declared where they are read (generation_fields.h, chat_request.h and so
// on). A name in neither place is unknown: it is logged once and passed over. So are the fields of
// other servers that would change no answer.
#pragma once

#include <vector>

#include "server/fields/field_reader.h"

namespace pagoda {

// The endpoints where a name is known. Those of kChat are known in the two after it too.
enum class FieldPlace { kAll, kCompletions, kChat, kResponses, kMessages };

// Appends those that are known at `place`, any but kAll, and that the table has not by itself.
void add_known_fields(std::vector<Field>& table, FieldPlace place);

// Completes what `schema`, fields_schema(table), says of `options`.
void describe_options(nlohmann::json& schema, const std::vector<Field>& table);

// Lifts Ollama's `options`: its names are taken as if they stood beside it, and what only says how
// Ollama is to load the model is passed over. Errors: a name that Ollama does not know, a name that
// stands beside it with another value.
std::optional<ApiError> lift_options(RequestJson& object);

}  // namespace pagoda

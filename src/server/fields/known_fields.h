// Request fields of other servers that have no effect here: OpenAI's, vLLM's, SGLang's, llama.cpp's
// and Ollama's. A field that would change an answer on its server is refused by name, so that no
// client gets another answer than it asked for. OpenAI's fields that never change an answer are
// accepted.
//
// Fields with an effect are declared where they are read (generation_fields.h, chat_request.h and
// so on). A name in neither place is unknown: it is logged once and ignored. The same happens to
// other servers' fields that change no answer.
#pragma once

#include <vector>

#include "server/fields/field_reader.h"

namespace pagoda {

// The endpoints where a field is known. Fields of kChat are also known in kResponses and kMessages.
enum class FieldPlace { kAll, kCompletions, kChat, kResponses, kMessages };

// Appends the fields that are known at `place` (not kAll) and that the table does not have.
void add_known_fields(std::vector<Field>& table, FieldPlace place);

// Completes the description of `options` in `schema`, which is fields_schema(table).
void describe_options(nlohmann::json& schema, const std::vector<Field>& table);

// Moves the names in Ollama's `options` to the object around it. Names that only say how Ollama
// loads the model are ignored. Names that Ollama does not know are appended to `unknown_names`.
// Errors: a name that has another value outside of `options`.
std::optional<ApiError> lift_options(RequestJson& object, std::vector<std::string>& unknown_names);

}  // namespace pagoda

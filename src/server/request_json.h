// RequestJson: a request's body as the client sent it, the keys of objects in its order. Chat
// templates print objects in that order, and an answer that is held to a schema has its properties
// in it. A key that is there twice keeps its first place and takes its last value, as in Python.
//
// It is used like nlohmann::json (core/json.h). That one sorts keys; answers and /openapi.json are
// made of it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "server/ordered_object.h"

namespace pagoda {

using RequestJson = nlohmann::basic_json<OrderedObject>;

// Returns the value that a text is, and is_discarded() where the text is no JSON. Thread-safe.
RequestJson parse_request_json(std::string_view text);

// Writes a value as UTF-8 in one line, with U+FFFD for what is not; never throws. Thread-safe.
std::string json_text(const RequestJson& value);

}  // namespace pagoda

// /openapi.json: built from the endpoints that the router knows and the field tables that read the
// requests, with the bounds of the model that is served.
//
// A request that its schemas accept is answered, with three exceptions: the context's length, what
// a chat template refuses, and the size of a grammar in bytes. Other requests are refused, with
// four exceptions: two names of one field with equal values, grammars, calls that must be made, and
// ids of stored responses. Of these the schemas accept only some, or none.
#pragma once

#include <string>
#include <string_view>

#include "server/generation/api_service.h"

namespace pagoda {

// Returns the OpenAPI 3.1 document as JSON text. needs_key: requests to the API need a key.
// root_path: the path below which a proxy serves it, or "".
std::string openapi_document(const ApiService& service, bool needs_key, std::string_view root_path);

}  // namespace pagoda

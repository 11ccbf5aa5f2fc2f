// /openapi.json: built from the endpoints that the router knows and the field tables that read the
// requests, with the bounds of the model that is served.
//
// A request that its schemas take is answered, with three exceptions: the context's length, what a
// chat template refuses, and what a grammar comes to in bytes. A request that they do not take is
// refused, with two exceptions: two names of one field with equal values, and grammars, of which
// they say less than is taken.
#pragma once

#include <string>
#include <string_view>

#include "server/generation/api_service.h"

namespace pagoda {

// Returns the OpenAPI 3.1 document, as JSON text. needs_key: requests to the API need one.
// root_path: where a proxy serves it, or "".
std::string openapi_document(const ApiService& service, bool needs_key, std::string_view root_path);

}  // namespace pagoda

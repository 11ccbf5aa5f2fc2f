// /openapi.json: built from the same field tables that read the requests, with the bounds of the
// model that is served. What its schemas take is answered, and what they do not take is refused,
// but for the context's length; of grammars they say less than is taken.
#pragma once

#include <string>
#include <string_view>

#include "server/api_service.h"

namespace pagoda {

// OpenAPI 3.1, as JSON text. needs_key: requests to the API need one. root_path:
// where a proxy serves it, or "".
std::string openapi_document(const ApiService& service, bool needs_key, std::string_view root_path);

}  // namespace pagoda

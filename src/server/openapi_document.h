// /openapi.json: built from the same field tables that read the requests.
#pragma once

#include <string>

namespace pagoda {

// OpenAPI 3.1, as JSON text.
std::string openapi_document();

}  // namespace pagoda

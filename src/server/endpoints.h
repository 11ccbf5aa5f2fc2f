// All endpoints. The router answers from this list, and /openapi.json is written from it.
#pragma once

#include <span>
#include <string_view>

#include "server/generation/endpoint.h"

namespace pagoda {

std::span<const Endpoint> endpoints();
// Returns the endpoint at a path; null: there is none.
const Endpoint* find_endpoint(std::string_view path);
// Returns the shape of errors at a path: the one of its API, or else OpenAI's. Clients of Anthropic's
// API get that API's shape at every path.
ErrorFormat error_format_at(std::string_view path, bool is_for_anthropic);
// Returns whether a path needs an API key, if the server has any. Unknown paths of the APIs need
// one too, so that clients without a key don't learn what is missing.
bool needs_api_key(std::string_view path);
// Returns what to say of a path of other servers that is known and not served; "": it is not known.
std::string_view why_not_served(std::string_view path);

}  // namespace pagoda

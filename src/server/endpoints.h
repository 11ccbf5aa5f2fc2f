// All endpoints, from which the router answers and /openapi.json is written.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "server/generation/endpoint.h"

namespace pagoda {

std::span<const Endpoint> endpoints();
// Returns null for a path that the table lacks.
const Endpoint* find_endpoint(std::string_view path);
// Returns whether a path is for those alone who bring an API key, where there are any: nothing there
// tells others what is not theirs, not even that it is missing.
bool needs_api_key(std::string_view path);
// Returns what stands in the parameter's place, decoded; "" where the endpoint has none.
std::string parameter_in_path(const Endpoint& endpoint, std::string_view path);

}  // namespace pagoda

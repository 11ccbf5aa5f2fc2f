// The endpoints of what tells of the server, its models and tokens, with their schemas for /openapi.json.
#pragma once

#include <span>

#include "server/generation/endpoint.h"

namespace pagoda {

std::span<const Endpoint> information_endpoints();

}  // namespace pagoda

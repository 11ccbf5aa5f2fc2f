// The endpoints of Ollama's API, with their schemas for /openapi.json.
#pragma once

#include <span>

#include "server/generation/endpoint.h"

namespace pagoda {

std::span<const Endpoint> ollama_endpoints();

}  // namespace pagoda

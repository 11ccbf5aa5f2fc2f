// The endpoints of Ollama's API, with their schemas for /openapi.json.
#pragma once

#include "server/generation/endpoint.h"

namespace pagoda {

EndpointTable ollama_endpoints();

}  // namespace pagoda

// The endpoints of llama.cpp's own requests, with their schemas for /openapi.json.
#pragma once

#include "server/generation/endpoint.h"

namespace pagoda {

EndpointTable llama_cpp_endpoints();

}  // namespace pagoda

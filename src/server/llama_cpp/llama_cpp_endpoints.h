// The endpoints of llama.cpp's own requests, with their schemas for /openapi.json.
#pragma once

#include <span>

#include "server/generation/endpoint.h"

namespace pagoda {

std::span<const Endpoint> llama_cpp_endpoints();

}  // namespace pagoda

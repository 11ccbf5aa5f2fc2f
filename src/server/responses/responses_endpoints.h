// The endpoints of OpenAI's responses, with their schemas for /openapi.json.
#pragma once

#include <span>

#include "server/generation/endpoint.h"

namespace pagoda {

std::span<const Endpoint> responses_endpoints();

}  // namespace pagoda

// The endpoints of Anthropic's messages, with their schemas for /openapi.json.
#pragma once

#include <span>

#include "server/generation/endpoint.h"

namespace pagoda {

std::span<const Endpoint> anthropic_endpoints();

}  // namespace pagoda

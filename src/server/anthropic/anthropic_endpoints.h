// The endpoints of Anthropic's messages, with their schemas for /openapi.json.
#pragma once

#include "server/generation/endpoint.h"

namespace pagoda {

EndpointTable anthropic_endpoints();

}  // namespace pagoda

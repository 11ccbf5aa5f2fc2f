// The endpoints of OpenAI's responses, with their schemas for /openapi.json.
#pragma once

#include "server/generation/endpoint.h"

namespace pagoda {

EndpointTable responses_endpoints();

}  // namespace pagoda

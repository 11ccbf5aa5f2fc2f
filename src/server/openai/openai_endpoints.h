// The endpoints of OpenAI's completions and chats, with their schemas for /openapi.json.
#pragma once

#include "server/generation/endpoint.h"

namespace pagoda {

EndpointTable openai_endpoints();

}  // namespace pagoda

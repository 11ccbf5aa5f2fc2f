// The endpoints of OpenAI's completions and chats, with their schemas for /openapi.json.
#pragma once

#include <span>

#include "server/generation/endpoint.h"

namespace pagoda {

std::span<const Endpoint> openai_endpoints();

}  // namespace pagoda

// The endpoints of what tells of the server, its models and tokens, with their schemas for /openapi.json.
#pragma once

#include "server/generation/endpoint.h"

namespace pagoda {

EndpointTable information_endpoints();

}  // namespace pagoda

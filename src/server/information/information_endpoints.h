// The endpoints that describe the server, its models and tokens, with schemas for /openapi.json.
#pragma once

#include "server/generation/endpoint.h"

namespace pagoda {

EndpointTable information_endpoints();

}  // namespace pagoda

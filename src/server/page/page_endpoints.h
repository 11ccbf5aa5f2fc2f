// The endpoints of the page, with their schemas for /openapi.json.
#pragma once

#include "server/generation/endpoint.h"

namespace pagoda {

EndpointTable page_endpoints();

}  // namespace pagoda

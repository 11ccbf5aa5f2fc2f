// The endpoints of embeddings and scores, with their schemas for /openapi.json.
#pragma once

#include "server/generation/endpoint.h"

namespace pagoda {

EndpointTable pooling_endpoints();

}  // namespace pagoda

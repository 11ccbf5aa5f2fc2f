// The endpoints of embeddings and scores, with their schemas for /openapi.json.
#pragma once

#include <span>

#include "server/generation/endpoint.h"

namespace pagoda {

std::span<const Endpoint> pooling_endpoints();

}  // namespace pagoda

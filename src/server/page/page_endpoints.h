// The endpoints of the page, with their schemas for /openapi.json.
#pragma once

#include <span>

#include "server/generation/endpoint.h"

namespace pagoda {

std::span<const Endpoint> page_endpoints();

}  // namespace pagoda

// POST /v1/embeddings.
#pragma once

#include "server/base/http_message.h"
#include "server/generation/api_service.h"

namespace pagoda {

HttpReply handle_embeddings(ApiService& service, const HttpRequest& request, const Wake& wake);

}  // namespace pagoda

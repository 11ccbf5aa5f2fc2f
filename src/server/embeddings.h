// POST /v1/embeddings.
#pragma once

#include "server/api_service.h"
#include "server/http_message.h"

namespace pagoda {

HttpReply handle_embeddings(ApiService& service, const HttpRequest& request, const Wake& wake);

}  // namespace pagoda

// POST /v1/score and /v1/rerank: how well texts match, by a model with a head for scores.
#pragma once

#include "server/base/http_message.h"
#include "server/generation/api_service.h"

namespace pagoda {

HttpReply handle_score(ApiService& service, const HttpRequest& request, const Wake& wake);
HttpReply handle_rerank(ApiService& service, const HttpRequest& request, const Wake& wake);

}  // namespace pagoda

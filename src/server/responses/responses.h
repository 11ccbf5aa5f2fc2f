// /v1/responses, OpenAI's Responses API, translated to chat requests. Responses are whole or
// streamed, and kept in memory for the client that made them.
#pragma once

#include "server/base/http_message.h"
#include "server/generation/api_service.h"

namespace pagoda {

HttpReply handle_responses(ApiService& service, const HttpRequest& request, const Wake& wake);
// Counts a prompt's tokens. Refuses the requests that handle_responses() refuses, except for their
// length.
HttpReply handle_response_count(ApiService& service, const HttpRequest& request, const Wake& wake);

}  // namespace pagoda

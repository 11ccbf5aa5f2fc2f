// /v1/responses, OpenAI's Responses API, translated to chat requests. Responses are created (whole
// or streamed), fetched and deleted. Stored ones are kept in memory, for the client that made them.
#pragma once

#include "server/base/http_message.h"
#include "server/generation/api_service.h"
#include "server/generation/server_facts.h"

namespace pagoda {

HttpReply handle_responses(ApiService& service, const HttpRequest& request, const Wake& wake);
HttpResponse stored_response(const ServerFacts& facts);
HttpResponse delete_response(const ServerFacts& facts);

}  // namespace pagoda

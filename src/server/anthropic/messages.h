// Anthropic's Messages API, translated to chat requests: /v1/messages and its count_tokens.
#pragma once

#include "server/base/http_message.h"
#include "server/generation/api_service.h"

namespace pagoda {

HttpReply handle_messages(ApiService& service, const HttpRequest& request, const Wake& wake);
// Counts a prompt's tokens. Refuses the requests that handle_messages() refuses, except for their
// length: max_tokens may be missing, and the prompt may be longer than the context.
HttpReply handle_message_count(ApiService& service, const HttpRequest& request, const Wake& wake);

}  // namespace pagoda

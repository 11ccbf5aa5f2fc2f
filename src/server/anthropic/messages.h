// /v1/messages and /v1/messages/count_tokens, Anthropic's Messages API: a translation onto chats.
#pragma once

#include "server/base/http_message.h"
#include "server/generation/api_service.h"

namespace pagoda {

HttpReply handle_messages(ApiService& service, const HttpRequest& request, const Wake& wake);
// Refuses what handle_messages() would, but for max_tokens, which may be anything.
HttpReply handle_message_count(ApiService& service, const HttpRequest& request, const Wake& wake);

}  // namespace pagoda

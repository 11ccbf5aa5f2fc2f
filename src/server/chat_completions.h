// POST /v1/chat/completions.
//
// Runs on one of the text workers' threads. A grammar goes on to their lane for grammars.
#pragma once

#include "server/api_service.h"
#include "server/http_message.h"

namespace pagoda {

HttpReply handle_chat_completions(ApiService& service, const HttpRequest& request,
                                  const Wake& wake);

}  // namespace pagoda

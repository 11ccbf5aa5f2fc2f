// POST /v1/chat/completions.
//
// Runs on a text worker. If a grammar must be compiled, it goes on in the lane for grammars.
#pragma once

#include "server/base/http_message.h"
#include "server/generation/api_service.h"

namespace pagoda {

HttpReply handle_chat_completions(ApiService& service, const HttpRequest& request,
                                  const Wake& wake);

}  // namespace pagoda

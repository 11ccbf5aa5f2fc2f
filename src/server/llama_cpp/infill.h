// POST /infill, as in llama.cpp: the text at an editor's cursor.
#pragma once

#include "server/base/http_message.h"
#include "server/generation/api_service.h"

namespace pagoda {

HttpReply handle_infill(ApiService& service, const HttpRequest& request, const Wake& wake);

}  // namespace pagoda

// POST /infill as llama.cpp has it: the text at a cursor, for editors.
#pragma once

#include "server/api_service.h"
#include "server/http_message.h"

namespace pagoda {

HttpReply handle_infill(ApiService& service, const HttpRequest& request, const Wake& wake);

}  // namespace pagoda

// Ollama's /api/chat and /api/generate, translated to chat requests. Answers are streams of JSON
// lines unless the request says otherwise.
#pragma once

#include <string>

#include "server/base/http_message.h"
#include "server/generation/api_service.h"

namespace pagoda {

HttpReply handle_ollama_chat(ApiService& service, const HttpRequest& request, const Wake& wake);
HttpReply handle_ollama_generate(ApiService& service, const HttpRequest& request, const Wake& wake);

// Drops ":latest", which Ollama's clients append to every name, unless the whole name is served.
void drop_tag(const ApiService& service, std::string& name);

}  // namespace pagoda

// Ollama's API: /api/chat and /api/generate, translated to chat requests, and endpoints about the
// model. Answers are streams of JSON lines unless the request says otherwise.
#pragma once

#include <string>

#include "server/base/http_message.h"
#include "server/generation/api_service.h"

namespace pagoda {

HttpReply handle_ollama_chat(ApiService& service, const HttpRequest& request, const Wake& wake);
HttpReply handle_ollama_generate(ApiService& service, const HttpRequest& request, const Wake& wake);
HttpResponse ollama_tags(const ApiService& service);
HttpResponse ollama_running_models(const ApiService& service);
HttpResponse ollama_show(ApiService& service, const HttpRequest& request);

// Drops ":latest", which Ollama's clients append to every name, unless the whole name is served.
void drop_tag(const ApiService& service, std::string& name);

// Returns JSON Schemas of requests: to /api/generate and to /api/show. /api/chat has a chat's.
nlohmann::json ollama_generate_schema();
nlohmann::json ollama_show_schema();

}  // namespace pagoda

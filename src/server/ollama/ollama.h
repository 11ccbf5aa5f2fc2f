// Ollama's API: /api/chat and /api/generate, translated onto chats, and what tells of the model.
// Answers stream as lines of JSON unless the request says otherwise.
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

// Drops the ":latest" that Ollama's clients put behind every name, unless a served one has it.
void drop_tag(const ApiService& service, std::string& name);

// Returns the JSON Schemas of /api/generate's requests and of /api/show's; /api/chat takes a chat's.
nlohmann::json ollama_generate_schema();
nlohmann::json ollama_show_schema();

}  // namespace pagoda

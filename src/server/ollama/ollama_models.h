// Ollama's endpoints about models: which there are, and the commands that manage them. The server
// has the model that it was started with.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "server/base/http_message.h"
#include "server/generation/api_service.h"

namespace pagoda {

HttpResponse ollama_tags(const ApiService& service);
HttpResponse ollama_running_models(const ApiService& service);
HttpResponse ollama_show(ApiService& service, const HttpRequest& request);
// Returns a version of Ollama's API, since clients compare it with those that they need, and
// Pagoda's own.
HttpResponse ollama_version();
// Answers that a model which is served has been pulled. Errors: another model.
HttpResponse ollama_pull(ApiService& service, const HttpRequest& request);

// Returns JSON Schemas of requests and of answers.
nlohmann::json ollama_model_schema();
nlohmann::json ollama_status_schema();
nlohmann::json ollama_version_schema();

}  // namespace pagoda

// Ollama's API: /api/embed, and /api/embeddings, its older form for one text.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "server/base/http_message.h"
#include "server/generation/api_service.h"

namespace pagoda {

HttpReply handle_ollama_embed(ApiService& service, const HttpRequest& request, const Wake& wake);
HttpReply handle_ollama_embeddings(ApiService& service, const HttpRequest& request,
                                   const Wake& wake);

// Returns the JSON Schemas of requests to /api/embed and to /api/embeddings.
nlohmann::json ollama_embed_schema();
nlohmann::json ollama_embedding_schema();

}  // namespace pagoda

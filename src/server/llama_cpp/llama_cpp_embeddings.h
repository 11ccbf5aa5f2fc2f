// POST /embedding, in llama.cpp's shape: /v1/embeddings with another name for the inputs, and another
// answer.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "server/base/http_message.h"
#include "server/generation/api_service.h"

namespace pagoda {

HttpReply handle_llama_cpp_embedding(ApiService& service, const HttpRequest& request,
                                     const Wake& wake);

nlohmann::json llama_cpp_embedding_schema();

}  // namespace pagoda

// POST /v1/embeddings.
#pragma once

#include <string_view>

#include "server/base/http_message.h"
#include "server/generation/api_service.h"
#include "server/pooling/embedding_answer.h"
#include "server/pooling/embedding_request.h"

namespace pagoda {

// Returns the embeddings of a request's inputs, in an API's layout. `inputs_field`: the field that
// held them, which errors name.
HttpReply embed_inputs(ApiService& service, const HttpRequest& http_request,
                       EmbeddingRequest request, EmbeddingLayout layout,
                       std::string_view inputs_field, const Wake& wake);

HttpReply handle_embeddings(ApiService& service, const HttpRequest& request, const Wake& wake);

}  // namespace pagoda

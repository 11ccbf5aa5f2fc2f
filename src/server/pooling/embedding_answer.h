// The answers of the endpoints that embed: text that is written as the embeddings come.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "core/clock.h"
#include "server/base/api_error.h"
#include "server/base/http_message.h"
#include "server/generation/api_service.h"
#include "server/generation/request_trace.h"
#include "serving/embedding_batch.h"

namespace pagoda {

// How an API writes embeddings, as JSON text.
struct EmbeddingLayout {
  std::string head;
  bool has_objects = false;  // each stands in an object with its index, as in OpenAI's API
  bool is_base64 = false;    // of float32, the low byte first; otherwise a list of numbers
  std::function<std::string(const EmbeddingBatch& batch)> tail;  // once all of them are there
};

struct EmbeddingJob {
  EmbeddingBatchRequest batch;
  RequestOrigin origin;
  EmbeddingLayout layout;
};

// Returns why such a request is refused, if it is: the model has another name (404), makes no
// embeddings, or has smaller ones.
std::optional<ApiError> check_embedding(const ApiService& service, const std::string& model_name,
                                        std::optional<int> dimensions);

nlohmann::json usage_json(const EmbeddingBatch& batch);

// Returns what counts the ends of a batch's prompts in the metrics and in the request's trace.
std::function<void(const EmbeddingEnd&)> observer_of_embeddings(ApiService& service,
                                                                const RequestOrigin& origin);

// Returns how much memory the prompts take while they wait for their turn.
std::int64_t num_prompt_bytes(const EmbeddingBatchRequest& request);

// Returns the reply to a request that has passed check_embedding(). It is refused where the answer
// would take too much memory, or its first prompt has no room in the queue.
HttpReply start_embeddings(ApiService& service, EmbeddingJob job, const Wake& wake);

}  // namespace pagoda

// The answers of endpoints for embeddings, as text that is written while embeddings are computed.
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
#include "serving/pooling/embedding_batch.h"

namespace pagoda {

// The JSON that an API writes around each embedding.
enum class EmbeddingFrame {
  kNone,
  kOpenAi,    // an object with the embedding and its index
  kLlamaCpp,  // an object with its index and a list, whose only item is the embedding
};

// The form in which an API writes embeddings, as JSON text.
struct EmbeddingLayout {
  std::string head;
  EmbeddingFrame frame = EmbeddingFrame::kNone;
  bool is_base64 = false;  // base64 of float32, low byte first; false: a list of numbers
  std::function<std::string(const EmbeddingBatch& batch)> tail;  // text after the last embedding
};

struct EmbeddingJob {
  EmbeddingBatchRequest batch;
  RequestOrigin origin;
  EmbeddingLayout layout;
};

// Returns the error with which a request for embeddings is refused, if any: the model has another
// name (404), makes no embeddings, or makes smaller ones than `dimensions`.
std::optional<ApiError> check_embedding(const ApiService& service, const std::string& model_name,
                                        std::optional<int> dimensions);

nlohmann::json usage_json(const EmbeddingBatch& batch);

// Returns a function that counts finished prompts in the metrics and in the request's trace.
std::function<void(const EmbeddingEnd&)> observer_of_embeddings(ApiService& service,
                                                                const RequestOrigin& origin);

// Returns how much memory, in bytes, the prompts take while they wait in the queue.
std::int64_t num_prompt_bytes(const EmbeddingBatchRequest& request);

// Returns the reply to a request that has passed check_embedding(). It is refused where the answer
// would take too much memory, or its first prompt has no room in the queue.
HttpReply start_embeddings(ApiService& service, EmbeddingJob job, const Wake& wake);

}  // namespace pagoda

#include "server/pooling/pooling_endpoints.h"

#include "core/json.h"
#include "server/base/answer_schema.h"
#include "server/pooling/embedding_request.h"
#include "server/pooling/embeddings.h"
#include "server/pooling/score_request.h"
#include "server/pooling/scores.h"

namespace pagoda {
namespace {

using nlohmann::json;

json pooled_usage_schema() {
  return object_schema({{"prompt_tokens", count_schema()}, {"total_tokens", count_schema()}});
}

json embedding_list_schema() {
  const json numbers = list_schema({{"type", "number"}});
  const json embedding = object_schema({{"object", {{"const", "embedding"}}},
                                        {"index", count_schema()},
                                        {"embedding", {{"anyOf", {numbers, text_schema()}}}}});
  return object_schema({{"object", {{"const", "list"}}},
                        {"data", list_schema(embedding)},
                        {"model", text_schema()},
                        {"usage", pooled_usage_schema()}});
}

json ranked_documents_schema() {
  // A document is not required, because return_documents may be false.
  json ranked =
      object_schema({{"index", count_schema()}, {"relevance_score", {{"type", "number"}}}});
  ranked["properties"]["document"] = object_schema({{"text", text_schema()}});
  return object_schema({{"id", text_schema()},
                        {"model", text_schema()},
                        {"results", list_schema(ranked)},
                        {"usage", pooled_usage_schema()}});
}

json score_list_schema() {
  const json score = object_schema({{"index", count_schema()},
                                    {"object", {{"const", "score"}}},
                                    {"score", {{"type", "number"}}}});
  return object_schema({{"id", text_schema()},
                        {"object", {{"const", "list"}}},
                        {"created", count_schema()},
                        {"model", text_schema()},
                        {"data", list_schema(score)},
                        {"usage", pooled_usage_schema()}});
}

constexpr Endpoint kPoolingEndpoints[] = {
    {.path = "/v1/embeddings",
     .read = handle_embeddings,
     .generates = true,
     .is_whole = true,
     .operation_id = "createEmbedding",
     .summary = "Makes a vector of each text",
     .request_schema = {"EmbeddingRequest", embedding_request_schema},
     .answer_schema = {"EmbeddingList", embedding_list_schema}},
    {.path = "/v1/rerank",
     .read = handle_rerank,
     .generates = true,
     .is_whole = true,
     .operation_id = "rerank",
     .summary = "Puts documents in order by how well they fit a query",
     .request_schema = {"RerankRequest", rerank_request_schema},
     .answer_schema = {"RankedDocuments", ranked_documents_schema}},
    {.path = "/v1/score",
     .read = handle_score,
     .generates = true,
     .is_whole = true,
     .operation_id = "score",
     .summary = "Says how well pairs of texts go together",
     .request_schema = {"ScoreRequest", score_request_schema},
     .answer_schema = {"ScoreList", score_list_schema}},
};

constexpr EndpointAlias kPoolingAliases[] = {
    {.path = "/rerank",
     .of = "/v1/rerank",
     .operation_id = "plainRerank",
     .summary = "The same, where clients of vLLM and llama.cpp look for it"},
    {.path = "/v2/rerank",
     .of = "/v1/rerank",
     .operation_id = "cohereRerank",
     .summary = "The same, where clients of Cohere look for it"},
    {.path = "/reranking",
     .of = "/v1/rerank",
     .operation_id = "plainReranking",
     .summary = "The same, under another name that llama.cpp has for it"},
    {.path = "/v1/reranking",
     .of = "/v1/rerank",
     .operation_id = "reranking",
     .summary = "The same, under another name that llama.cpp has for it"},
    {.path = "/score",
     .of = "/v1/score",
     .operation_id = "plainScore",
     .summary = "The same, where clients of vLLM look for it"},
};

}  // namespace

EndpointTable pooling_endpoints() {
  return {.endpoints = kPoolingEndpoints, .aliases = kPoolingAliases};
}

}  // namespace pagoda

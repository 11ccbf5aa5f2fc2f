#include "server/llama_cpp/llama_cpp_endpoints.h"

#include "core/json.h"
#include "server/base/answer_schema.h"
#include "server/llama_cpp/completion.h"
#include "server/llama_cpp/completion_request.h"
#include "server/llama_cpp/infill.h"
#include "server/llama_cpp/infill_request.h"
#include "server/llama_cpp/llama_cpp_embeddings.h"

namespace pagoda {
namespace {

using nlohmann::json;

json answer_schema() {
  return {{"type", "object"},
          {"properties", {{"content", text_schema()}, {"stop", {{"type", "boolean"}}}}}};
}

json embeddings_schema() {
  const json numbers = list_schema({{"type", "number"}});
  return list_schema(
      object_schema({{"index", count_schema()}, {"embedding", list_schema(numbers)}}));
}

constexpr Endpoint kLlamaCppEndpoints[] = {
    {.path = "/completion",
     .read = handle_llama_cpp_completion,
     .generates = true,
     .operation_id = "llamaCppCompletion",
     .summary = "Continues a text, and answers as llama.cpp does",
     .request_schema = {"LlamaCppCompletionRequest", llama_cpp_completion_schema},
     .answer_schema = {"LlamaCppAnswer", answer_schema}},
    {.path = "/embedding",
     .read = handle_llama_cpp_embedding,
     .generates = true,
     .is_whole = true,
     .operation_id = "llamaCppEmbedding",
     .summary = "Makes a vector of each text, and answers as llama.cpp does",
     .request_schema = {"LlamaCppEmbeddingRequest", llama_cpp_embedding_schema},
     .answer_schema = {"LlamaCppEmbeddings", embeddings_schema}},
    {.path = "/infill",
     .read = handle_infill,
     .generates = true,
     .operation_id = "infill",
     .summary = "The text at a cursor, as llama.cpp answers editors",
     .request_schema = {"InfillRequest", infill_request_schema},
     .answer_schema = {"LlamaCppAnswer", answer_schema}},
};

constexpr EndpointAlias kLlamaCppAliases[] = {
    {.path = "/completions",
     .of = "/completion",
     .operation_id = "llamaCppCompletions",
     .summary = "The same, under another name that llama.cpp has for it"},
    {.path = "/embeddings",
     .of = "/embedding",
     .operation_id = "llamaCppEmbeddings",
     .summary = "The same, under another name that llama.cpp has for it"},
};

}  // namespace

EndpointTable llama_cpp_endpoints() {
  return {.endpoints = kLlamaCppEndpoints, .aliases = kLlamaCppAliases};
}

}  // namespace pagoda

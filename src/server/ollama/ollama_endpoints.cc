#include "server/ollama/ollama_endpoints.h"

#include "core/json.h"
#include "server/base/answer_schema.h"
#include "server/ollama/ollama.h"
#include "server/ollama/ollama_answers.h"
#include "server/ollama/ollama_embeddings.h"
#include "server/ollama/ollama_models.h"
#include "server/ollama/ollama_request.h"

namespace pagoda {
namespace {

using nlohmann::json;

json ollama_answer_schema() {
  return object_schema(
      {{"model", text_schema()}, {"created_at", text_schema()}, {"done", {{"type", "boolean"}}}});
}

json ollama_error_schema() {
  return object_schema({{"error", text_schema()}});
}

json numbers_schema() {
  return list_schema({{"type", "number"}});
}

json made_embedding_schema() {
  return object_schema({{"embedding", numbers_schema()}});
}

json made_embeddings_schema() {
  return object_schema({{"model", text_schema()},
                        {"embeddings", list_schema(numbers_schema())},
                        {"total_duration", count_schema()},
                        {"load_duration", count_schema()},
                        {"prompt_eval_count", count_schema()}});
}

constexpr Endpoint kOllamaEndpoints[] = {
    {.path = "/api/chat",
     .read = handle_ollama_chat,
     .generates = true,
     .operation_id = "ollamaChat",
     .summary = "Answers a conversation as Ollama does",
     .request_schema = {"OllamaChatRequest", ollama_chat_schema},
     .answer_schema = {"OllamaAnswer", ollama_answer_schema},
     .stream_type = "application/x-ndjson"},
    {.path = "/api/generate",
     .read = handle_ollama_generate,
     .generates = true,
     .operation_id = "ollamaGenerate",
     .summary = "Answers a prompt as Ollama does",
     .request_schema = {"OllamaGenerateRequest", ollama_generate_schema},
     .answer_schema = {"OllamaAnswer", ollama_answer_schema},
     .stream_type = "application/x-ndjson"},
    {.path = "/api/embed",
     .read = handle_ollama_embed,
     .generates = true,
     .is_whole = true,
     .operation_id = "ollamaEmbed",
     .summary = "Makes a vector of each text as Ollama does",
     .request_schema = {"OllamaEmbedRequest", ollama_embed_schema},
     .answer_schema = {"OllamaEmbeddings", made_embeddings_schema}},
    {.path = "/api/embeddings",
     .read = handle_ollama_embeddings,
     .generates = true,
     .is_whole = true,
     .operation_id = "ollamaEmbeddings",
     .summary = "Makes a vector of a text as older versions of Ollama do",
     .request_schema = {"OllamaEmbeddingRequest", ollama_embedding_schema},
     .answer_schema = {"OllamaEmbedding", made_embedding_schema}},
    {.path = "/api/tags",
     .tell = [](const ServerFacts& facts) { return ollama_tags(facts.service); },
     .operation_id = "ollamaTags",
     .summary = "The models served, as Ollama lists them"},
    {.path = "/api/ps",
     .tell = [](const ServerFacts& facts) { return ollama_running_models(facts.service); },
     .operation_id = "ollamaRunningModels",
     .summary = "The models in memory, as Ollama lists them"},
    {.path = "/api/show",
     .read = [](ApiService& service, const HttpRequest& request, const Wake&) -> HttpReply {
       return {ollama_show(service, request), {}};
     },
     .operation_id = "ollamaShow",
     .summary = "What Ollama tells of a model",
     .request_schema = {"OllamaModelRequest", ollama_model_schema}},
    {.path = "/api/pull",
     .read = [](ApiService& service, const HttpRequest& request, const Wake&) -> HttpReply {
       return {ollama_pull(service, request), {}};
     },
     .operation_id = "ollamaPull",
     .summary = "Whether a model is there: the one that is served is",
     .request_schema = {"OllamaModelRequest", ollama_model_schema},
     .answer_schema = {"OllamaStatus", ollama_status_schema}},
    {.path = "/api/version",
     .tell = [](const ServerFacts&) { return ollama_version(); },
     .operation_id = "ollamaVersion",
     .summary = "A version of Ollama's API that clients accept, and the server's own",
     .answer_schema = {"OllamaVersion", ollama_version_schema}},
};

constexpr std::string_view kOneModel = "the server has the model that it was started with";

constexpr UnservedPath kUnservedPaths[] = {{"/api/create", kOneModel},
                                           {"/api/copy", kOneModel},
                                           {"/api/delete", kOneModel},
                                           {"/api/push", kOneModel}};

}  // namespace

EndpointTable ollama_endpoints() {
  return {
      .endpoints = kOllamaEndpoints,
      .unserved = kUnservedPaths,
      .errors = {[](const ApiError& error, std::string_view) { return ollama_error_body(error); },
                 {"OllamaError", ollama_error_schema}},
      .errors_below = "/api/"};
}

}  // namespace pagoda

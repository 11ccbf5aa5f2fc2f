#include "server/ollama/ollama_endpoints.h"

#include "core/json.h"
#include "server/base/answer_schema.h"
#include "server/base/version_answer.h"
#include "server/chat/chat_request.h"
#include "server/ollama/ollama.h"
#include "server/ollama/ollama_answers.h"
#include "server/ollama/ollama_embeddings.h"

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
     .request_schema = {"ChatCompletionRequest", chat_request_schema},
     .answer_schema = {"OllamaAnswer", ollama_answer_schema}},
    {.path = "/api/generate",
     .read = handle_ollama_generate,
     .generates = true,
     .operation_id = "ollamaGenerate",
     .summary = "Answers a prompt as Ollama does",
     .request_schema = {"OllamaGenerateRequest", ollama_generate_schema},
     .answer_schema = {"OllamaAnswer", ollama_answer_schema}},
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
     .request_schema = {"OllamaShowRequest", ollama_show_schema}},
    {.path = "/api/version",
     .tell = [](const ServerFacts&) { return version_response(); },
     .operation_id = "ollamaVersion",
     .summary = "The server's version, where Ollama's clients look for it",
     .answer_schema = {"Version", version_schema}},
};

}  // namespace

EndpointTable ollama_endpoints() {
  return {
      .endpoints = kOllamaEndpoints,
      .errors = {[](const ApiError& error, std::string_view) { return ollama_error_body(error); },
                 {"OllamaError", ollama_error_schema}},
      .errors_below = "/api/"};
}

}  // namespace pagoda

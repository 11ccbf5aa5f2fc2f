#include "server/endpoints.h"

#include <algorithm>
#include <iterator>

#include "server/anthropic/messages.h"
#include "server/information/information.h"
#include "server/information/tokenizer_endpoints.h"
#include "server/llama_cpp/infill.h"
#include "server/ollama/ollama.h"
#include "server/ollama/ollama_embeddings.h"
#include "server/openai/chat_completions.h"
#include "server/openai/completions.h"
#include "server/page/page.h"
#include "server/pooling/embeddings.h"
#include "server/pooling/scores.h"
#include "server/responses/responses.h"

namespace pagoda {
namespace {

constexpr Endpoint kEndpoints[] = {
    {.path = "/",
     .tell = [](const ServerFacts& facts) { return page_response(facts.page); },
     .asks_for_no_key = true,
     .operation_id = "page",
     .summary = "A page to chat on",
     .answer_type = "text/html"},
    {.path = "/health",
     .tell = [](const ServerFacts& facts) { return health_response(facts.service); },
     .asks_for_no_key = true,
     .operation_id = "health",
     .summary = "Whether the engine works",
     .answer_schema = "Health"},
    {.path = "/ping",
     .tell = [](const ServerFacts& facts) { return health_response(facts.service); },
     .asks_for_no_key = true,
     .operation_id = "ping",
     .summary = "The same, where SageMaker looks for it",
     .answer_schema = "Health"},
    {.path = "/livez",
     .tell = [](const ServerFacts&) { return live_response(); },
     .asks_for_no_key = true,
     .operation_id = "livez",
     .summary = "Whether the process answers, also while it loads a model or ends",
     .answer_schema = "Health"},
    {.path = "/readyz",
     .tell = [](const ServerFacts& facts) { return health_response(facts.service); },
     .tells_readiness = true,
     .asks_for_no_key = true,
     .operation_id = "readyz",
     .summary = "Whether requests are taken",
     .answer_schema = "Health"},
    {.path = "/load",
     .tell = [](const ServerFacts& facts) { return load_response(facts.service); },
     .asks_for_no_key = true,
     .operation_id = "load",
     .summary = "How many sequences run or wait",
     .answer_schema = "Load"},
    {.path = "/v1/load",
     .tell = [](const ServerFacts& facts) { return load_response(facts.service); },
     .operation_id = "loadOfApi",
     .summary = "The same, for routers that know the API's paths alone",
     .answer_schema = "Load"},
    {.path = "/version",
     .tell = [](const ServerFacts&) { return version_response(); },
     .asks_for_no_key = true,
     .operation_id = "version",
     .summary = "The server's version",
     .answer_schema = "Version"},
    {.path = "/metrics",
     .tell = [](const ServerFacts& facts) { return metrics_response(facts.service); },
     .asks_for_no_key = true,
     .operation_id = "metrics",
     .summary = "Figures in Prometheus' text format",
     .answer_type = "text/plain"},
    {.path = "/server_info",
     .tell = [](const ServerFacts& facts) { return server_info_response(facts.service); },
     .operation_id = "serverInfo",
     .summary = "The limits by which the engine works"},
    {.path = "/props",
     .tell = [](const ServerFacts& facts) { return props_response(facts.service); },
     .operation_id = "props",
     .summary = "What llama.cpp's clients need to know of the model"},
    {.path = "/slots",
     .tell = [](const ServerFacts& facts) { return slots_response(facts.service); },
     .operation_id = "slots",
     .summary = "Places for sequences, as llama.cpp lists them",
     .answer_schema = "SlotList"},
    {.path = "/openapi.json",
     .tell =
         [](const ServerFacts& facts) {
           return HttpResponse{.shared_body = facts.openapi_document};
         },
     .asks_for_no_key = true,
     .operation_id = "openapi",
     .summary = "This document"},
    {.path = "/v1/models",
     .tell = [](const ServerFacts& facts) { return models_response(facts.service); },
     .operation_id = "listModels",
     .summary = "The models served",
     .answer_schema = "ModelList"},
    {.path = "/v1/models/{model}",
     .tell =
         [](const ServerFacts& facts) { return model_response(facts.service, facts.parameter); },
     .operation_id = "getModel",
     .summary = "One model",
     .answer_schema = "Model"},
    {.path = "/v1/completions",
     .read = handle_completions,
     .generates = true,
     .operation_id = "createCompletion",
     .summary = "Goes on with a text",
     .request_schema = "CompletionRequest",
     .answer_schema = "Completion"},
    {.path = "/v1/chat/completions",
     .read = handle_chat_completions,
     .generates = true,
     .operation_id = "createChatCompletion",
     .summary = "Answers a conversation",
     .request_schema = "ChatCompletionRequest",
     .answer_schema = "ChatCompletion"},
    {.path = "/infill",
     .read = handle_infill,
     .generates = true,
     .operation_id = "infill",
     .summary = "The text at a cursor, as llama.cpp answers editors",
     .request_schema = "InfillRequest",
     .answer_schema = "Infill"},
    {.path = "/v1/embeddings",
     .read = handle_embeddings,
     .generates = true,
     .is_whole = true,
     .operation_id = "createEmbedding",
     .summary = "Makes a vector of each text",
     .request_schema = "EmbeddingRequest",
     .answer_schema = "EmbeddingList"},
    {.path = "/v1/rerank",
     .read = handle_rerank,
     .generates = true,
     .is_whole = true,
     .operation_id = "rerank",
     .summary = "Puts documents in order by how well they fit a query",
     .request_schema = "RerankRequest",
     .answer_schema = "RankedDocuments"},
    {.path = "/rerank",
     .read = handle_rerank,
     .generates = true,
     .is_whole = true,
     .operation_id = "plainRerank",
     .summary = "The same, where clients of vLLM and llama.cpp look for it",
     .request_schema = "RerankRequest",
     .answer_schema = "RankedDocuments"},
    {.path = "/v2/rerank",
     .read = handle_rerank,
     .generates = true,
     .is_whole = true,
     .operation_id = "cohereRerank",
     .summary = "The same, where clients of Cohere look for it",
     .request_schema = "RerankRequest",
     .answer_schema = "RankedDocuments"},
    {.path = "/v1/score",
     .read = handle_score,
     .generates = true,
     .is_whole = true,
     .operation_id = "score",
     .summary = "Says how well pairs of texts go together",
     .request_schema = "ScoreRequest",
     .answer_schema = "ScoreList"},
    {.path = "/score",
     .read = handle_score,
     .generates = true,
     .is_whole = true,
     .operation_id = "plainScore",
     .summary = "The same, where clients of vLLM look for it",
     .request_schema = "ScoreRequest",
     .answer_schema = "ScoreList"},
    {.path = "/v1/responses",
     .read = handle_responses,
     .generates = true,
     .operation_id = "createResponse",
     .summary = "Answers a conversation with items: messages, calls of tools, thoughts",
     .request_schema = "ResponseRequest",
     .answer_schema = "Response"},
    {.path = "/v1/responses/{response_id}",
     .tell = stored_response,
     .erase = delete_response,
     .operation_id = "getResponse",
     .summary = "A response that is stored",
     .answer_schema = "Response"},
    {.path = "/v1/messages",
     .read = handle_messages,
     .generates = true,
     .operation_id = "createMessage",
     .summary = "Answers a conversation as Anthropic's API has it",
     .request_schema = "MessagesRequest",
     .answer_schema = "Message"},
    {.path = "/v1/messages/count_tokens",
     .read = handle_message_count,
     .operation_id = "countMessageTokens",
     .summary = "How many tokens such a conversation has",
     .request_schema = "MessageCountRequest",
     .answer_schema = "MessageTokens"},
    {.path = "/api/chat",
     .read = handle_ollama_chat,
     .generates = true,
     .operation_id = "ollamaChat",
     .summary = "Answers a conversation as Ollama does",
     .request_schema = "ChatCompletionRequest",
     .answer_schema = "OllamaAnswer"},
    {.path = "/api/generate",
     .read = handle_ollama_generate,
     .generates = true,
     .operation_id = "ollamaGenerate",
     .summary = "Answers a prompt as Ollama does",
     .request_schema = "OllamaGenerateRequest",
     .answer_schema = "OllamaAnswer"},
    {.path = "/api/embed",
     .read = handle_ollama_embed,
     .generates = true,
     .is_whole = true,
     .operation_id = "ollamaEmbed",
     .summary = "Makes a vector of each text as Ollama does",
     .request_schema = "OllamaEmbedRequest",
     .answer_schema = "OllamaEmbeddings"},
    {.path = "/api/embeddings",
     .read = handle_ollama_embeddings,
     .generates = true,
     .is_whole = true,
     .operation_id = "ollamaEmbeddings",
     .summary = "Makes a vector of a text as older versions of Ollama do",
     .request_schema = "OllamaEmbeddingRequest",
     .answer_schema = "OllamaEmbedding"},
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
     .request_schema = "OllamaShowRequest"},
    {.path = "/api/version",
     .tell = [](const ServerFacts&) { return version_response(); },
     .operation_id = "ollamaVersion",
     .summary = "The server's version, where Ollama's clients look for it",
     .answer_schema = "Version"},
    {.path = "/tokenize",
     .read = [](ApiService& service, const HttpRequest& request, const Wake&) -> HttpReply {
       return {tokenize_response(service, request), {}};
     },
     .operation_id = "tokenize",
     .summary = "Text or messages to token ids",
     .request_schema = "TokenizeRequest",
     .answer_schema = "Tokenized"},
    {.path = "/detokenize",
     .read = [](ApiService& service, const HttpRequest& request, const Wake&) -> HttpReply {
       return {detokenize_response(service, request), {}};
     },
     .operation_id = "detokenize",
     .summary = "Token ids to text",
     .request_schema = "DetokenizeRequest",
     .answer_schema = "Text"},
    {.path = "/reset_prefix_cache",
     .read = [](ApiService& service, const HttpRequest& request, const Wake&) -> HttpReply {
       return {reset_prefix_cache_response(service, request.client), {}};
     },
     .operation_id = "resetPrefixCache",
     .summary =
         "Forgets what the prefix cache holds of the client's requests, but for those that run"},
    {.path = "/v1/prefix_cache/events/{after}",
     .tell =
         [](const ServerFacts& facts) {
           return cache_events_response(facts.service, facts.parameter, facts.client);
         },
     .operation_id = "prefixCacheEvents",
     .summary = "Which blocks of the client's requests the prefix cache has come to hold and has "
                "given up since",
     .answer_schema = "CacheEvents"},
    {.path = "/tokenizer_info",
     .tell = [](const ServerFacts& facts) { return tokenizer_info_response(facts.service); },
     .operation_id = "tokenizerInfo",
     .summary = "What clients that render prompts by themselves need to know"},
    {.path = "/apply-template",
     .read = [](ApiService& service, const HttpRequest& request, const Wake&) -> HttpReply {
       return {apply_template_response(service, request), {}};
     },
     .operation_id = "applyTemplate",
     .summary = "The text that a conversation becomes",
     .request_schema = "ChatCompletionRequest",
     .answer_schema = "Text"},
};

// Returns what stands in front of the parameter; "" where the path has none.
std::string_view prefix_of(const Endpoint& endpoint) {
  if (!endpoint.path.ends_with('}')) return "";
  return endpoint.path.substr(0, endpoint.path.rfind('{'));
}

bool matches(const Endpoint& endpoint, std::string_view path) {
  const std::string_view prefix = prefix_of(endpoint);
  if (prefix.empty()) return endpoint.path == path;
  return path.starts_with(prefix) && path.size() > prefix.size();
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// %41 to A; what is no escape stays as it is.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 &&
                           hex_value(text[i + 2]) >= 0;
    decoded += is_escape ? static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]))
                         : text[i];
    if (is_escape) i += 2;
  }
  return decoded;
}

}  // namespace

std::string_view Endpoint::parameter() const {
  if (!path.ends_with('}')) return "";
  const std::size_t begin = path.rfind('{') + 1;
  return path.substr(begin, path.size() - 1 - begin);
}

std::span<const Endpoint> endpoints() {
  return kEndpoints;
}

bool needs_api_key(std::string_view path) {
  if (const Endpoint* const endpoint = find_endpoint(path)) return !endpoint->asks_for_no_key;
  return path == "/v1" || path.starts_with("/v1/") || path.starts_with("/api/");
}

const Endpoint* find_endpoint(std::string_view path) {
  const auto* const found = std::find_if(std::begin(kEndpoints), std::end(kEndpoints),
                                         [&](const Endpoint& each) { return matches(each, path); });
  return found == std::end(kEndpoints) ? nullptr : found;
}

std::string parameter_in_path(const Endpoint& endpoint, std::string_view path) {
  const std::string_view prefix = prefix_of(endpoint);
  return prefix.empty() ? std::string() : percent_decoded(path.substr(prefix.size()));
}

}  // namespace pagoda

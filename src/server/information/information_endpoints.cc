#include "server/information/information_endpoints.h"

#include "core/json.h"
#include "server/base/answer_schema.h"
#include "server/base/version_answer.h"
#include "server/chat/chat_request.h"
#include "server/information/information.h"
#include "server/information/tokenize_request.h"
#include "server/information/tokenizer_endpoints.h"

namespace pagoda {
namespace {

using nlohmann::json;

json health_schema() {
  return object_schema({{"status", {{"const", "ok"}}}});
}

json load_schema() {
  return object_schema({{"server_load", count_schema()}});
}

json cache_events_schema() {
  const json event = object_schema({{"type", text_schema()}, {"digest", text_schema()}});
  return object_schema({{"root", text_schema()},
                        {"block_size", count_schema()},
                        {"is_whole", {{"type", "boolean"}}},
                        {"events", list_schema(event)},
                        {"next", count_schema()}});
}

json slot_list_schema() {
  return list_schema({{"type", "object"}});
}

json model_schema() {
  return object_schema({{"id", text_schema()},
                        {"object", {{"const", "model"}}},
                        {"created", count_schema()},
                        {"owned_by", text_schema()}});
}

json model_list_schema() {
  return object_schema({{"object", {{"const", "list"}}}, {"data", list_schema(model_schema())}});
}

json tokenized_schema() {
  const json bytes = list_schema(count_schema());
  const json piece = object_schema(
      {{"id", count_schema()}, {"piece", {{"anyOf", json::array({text_schema(), bytes})}}}});
  const json token = {{"anyOf", json::array({count_schema(), piece})}};
  return object_schema({{"count", count_schema()},
                        {"max_model_len", count_schema()},
                        {"tokens", list_schema(token)},
                        {"token_strs", {{"type", {"array", "null"}}, {"items", text_schema()}}}});
}

json prompt_text_schema() {
  return object_schema({{"prompt", text_schema()}});
}

constexpr Endpoint kInformationEndpoints[] = {
    {.path = "/health",
     .tell = [](const ServerFacts& facts) { return health_response(facts.service); },
     .asks_for_no_key = true,
     .operation_id = "health",
     .summary = "Whether the engine works",
     .answer_schema = {"Health", health_schema}},
    {.path = "/livez",
     .tell = [](const ServerFacts&) { return live_response(); },
     .asks_for_no_key = true,
     .operation_id = "livez",
     .summary = "Whether the process answers, also while it loads a model or ends",
     .answer_schema = {"Health", health_schema}},
    {.path = "/readyz",
     .tell = [](const ServerFacts& facts) { return health_response(facts.service); },
     .tells_readiness = true,
     .asks_for_no_key = true,
     .operation_id = "readyz",
     .summary = "Whether requests are taken",
     .answer_schema = {"Health", health_schema}},
    {.path = "/load",
     .tell = [](const ServerFacts& facts) { return load_response(facts.service); },
     .asks_for_no_key = true,
     .operation_id = "load",
     .summary = "How many sequences run or wait",
     .answer_schema = {"Load", load_schema}},
    {.path = "/v1/load",
     .tell = [](const ServerFacts& facts) { return load_response(facts.service); },
     .operation_id = "loadOfApi",
     .summary = "The same, for routers that know the API's paths alone",
     .answer_schema = {"Load", load_schema}},
    {.path = "/version",
     .tell = [](const ServerFacts&) { return version_response(); },
     .asks_for_no_key = true,
     .operation_id = "version",
     .summary = "The server's version",
     .answer_schema = {"Version", version_schema}},
    {.path = "/metrics",
     .tell = [](const ServerFacts& facts) { return metrics_response(facts); },
     .asks_for_no_key = true,
     .operation_id = "metrics",
     .summary = "Figures in Prometheus' text format, or OpenMetrics' where Accept prefers it",
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
     .answer_schema = {"SlotList", slot_list_schema}},
    {.path = "/openapi.json",
     .tell =
         [](const ServerFacts& facts) {
           return HttpResponse{.shared_body = facts.openapi_document};
         },
     .asks_for_no_key = true,
     .operation_id = "openapi",
     .summary = "This document"},
    {.path = "/v1/models",
     .tell =
         [](const ServerFacts& facts) {
           return models_response(facts.service, facts.is_for_anthropic);
         },
     .operation_id = "listModels",
     .summary = "The models served; as Anthropic lists them under the header anthropic-version",
     .answer_schema = {"ModelList", model_list_schema}},
    {.path = "/v1/models/{model}",
     .tell =
         [](const ServerFacts& facts) {
           return model_response(facts.service, facts.parameter, facts.is_for_anthropic);
         },
     .operation_id = "getModel",
     .summary = "One model",
     .answer_schema = {"Model", model_schema}},
    {.path = "/tokenize",
     .read = [](ApiService& service, const HttpRequest& request, const Wake&) -> HttpReply {
       return {tokenize_response(service, request), {}};
     },
     .operation_id = "tokenize",
     .summary = "Text or messages to token ids",
     .request_schema = {"TokenizeRequest", tokenize_request_schema},
     .answer_schema = {"Tokenized", tokenized_schema}},
    {.path = "/detokenize",
     .read = [](ApiService& service, const HttpRequest& request, const Wake&) -> HttpReply {
       return {detokenize_response(service, request), {}};
     },
     .operation_id = "detokenize",
     .summary = "Token ids to text",
     .request_schema = {"DetokenizeRequest", detokenize_request_schema},
     .answer_schema = {"Text", prompt_text_schema}},
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
     .answer_schema = {"CacheEvents", cache_events_schema}},
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
     .request_schema = {"ChatCompletionRequest", chat_request_schema},
     .answer_schema = {"Text", prompt_text_schema}},
};

constexpr EndpointAlias kInformationAliases[] = {
    {.path = "/ping",
     .of = "/health",
     .operation_id = "ping",
     .summary = "The same, where SageMaker looks for it"},
    {.path = "/v1/health",
     .of = "/health",
     .operation_id = "healthOfApi",
     .summary = "The same, where clients of llama.cpp look for it"},
    {.path = "/models",
     .of = "/v1/models",
     .operation_id = "plainModels",
     .summary = "The same, where clients of llama.cpp look for it"},
};

}  // namespace

EndpointTable information_endpoints() {
  return {.endpoints = kInformationEndpoints, .aliases = kInformationAliases};
}

}  // namespace pagoda

#include "server/openai/openai_endpoints.h"

#include <utility>

#include "core/json.h"
#include "server/base/answer_schema.h"
#include "server/chat/chat_request.h"
#include "server/openai/chat_completions.h"
#include "server/openai/completion_request.h"
#include "server/openai/completions.h"

namespace pagoda {
namespace {

using nlohmann::json;

json usage_schema() {
  return object_schema(
      {{"prompt_tokens", count_schema()},
       {"completion_tokens", count_schema()},
       {"total_tokens", count_schema()},
       {"completion_tokens_details", object_schema({{"reasoning_tokens", count_schema()}})}});
}

// Returns an answer's schema. Its choices have the properties of `choice` and those of all choices.
json answer_schema(const char* object, json choice) {
  choice["index"] = count_schema();
  choice["logprobs"] = {{"type", {"object", "null"}}};
  choice["finish_reason"] = {{"enum", {"stop", "length", "tool_calls", "function_call"}}};
  return object_schema({{"id", text_schema()},
                        {"object", {{"const", object}}},
                        {"created", count_schema()},
                        {"model", text_schema()},
                        {"system_fingerprint", text_schema()},
                        {"choices", list_schema(object_schema(std::move(choice)))},
                        {"usage", usage_schema()}});
}

json completion_schema() {
  return answer_schema("text_completion", {{"text", text_schema()}});
}

json chat_completion_schema() {
  json message = object_schema(
      {{"role", {{"const", "assistant"}}}, {"content", {{"type", {"string", "null"}}}}});
  for (const char* name : {"reasoning_content", "reasoning"})
    message["properties"][name] = text_schema();
  return answer_schema("chat.completion", {{"message", message}});
}

constexpr Endpoint kOpenaiEndpoints[] = {
    {.path = "/v1/completions",
     .read = handle_completions,
     .generates = true,
     .operation_id = "createCompletion",
     .summary = "Goes on with a text",
     .request_schema = {"CompletionRequest", completion_request_schema},
     .answer_schema = {"Completion", completion_schema}},
    {.path = "/v1/chat/completions",
     .read = handle_chat_completions,
     .generates = true,
     .operation_id = "createChatCompletion",
     .summary = "Answers a conversation",
     .request_schema = {"ChatCompletionRequest", chat_request_schema},
     .answer_schema = {"ChatCompletion", chat_completion_schema}},
};

constexpr EndpointAlias kOpenaiAliases[] = {
    {.path = "/chat/completions",
     .of = "/v1/chat/completions",
     .operation_id = "plainChatCompletion",
     .summary = "The same, where clients of llama.cpp look for it"},
};

}  // namespace

EndpointTable openai_endpoints() {
  return {.endpoints = kOpenaiEndpoints, .aliases = kOpenaiAliases};
}

}  // namespace pagoda

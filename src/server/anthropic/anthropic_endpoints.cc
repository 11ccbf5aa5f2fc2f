#include "server/anthropic/anthropic_endpoints.h"

#include "core/json.h"
#include "server/anthropic/anthropic_error.h"
#include "server/anthropic/messages.h"
#include "server/anthropic/messages_request.h"
#include "server/base/answer_schema.h"

namespace pagoda {
namespace {

using nlohmann::json;

json message_schema() {
  return object_schema({{"id", text_schema()},
                        {"type", {{"const", "message"}}},
                        {"role", {{"const", "assistant"}}},
                        {"model", text_schema()},
                        {"content", list_schema({{"type", "object"}})},
                        {"stop_reason", text_schema()},
                        {"usage", {{"type", "object"}}}});
}

json message_tokens_schema() {
  return object_schema({{"input_tokens", count_schema()}});
}

constexpr Endpoint kAnthropicEndpoints[] = {
    {.path = "/v1/messages",
     .read = handle_messages,
     .generates = true,
     .operation_id = "createMessage",
     .summary = "Answers a conversation as Anthropic's API has it",
     .request_schema = {"MessagesRequest", messages_request_schema},
     .answer_schema = {"Message", message_schema}},
    {.path = "/v1/messages/count_tokens",
     .read = handle_message_count,
     .operation_id = "countMessageTokens",
     .summary = "How many tokens such a conversation has",
     .request_schema = {"MessageCountRequest", message_count_schema},
     .answer_schema = {"MessageTokens", message_tokens_schema}},
};

}  // namespace

EndpointTable anthropic_endpoints() {
  return {.endpoints = kAnthropicEndpoints,
          .errors = {anthropic_error_body, {"AnthropicError", anthropic_error_schema}},
          .errors_below = "/v1/messages/"};
}

}  // namespace pagoda

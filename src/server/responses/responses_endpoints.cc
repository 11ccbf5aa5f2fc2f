#include "server/responses/responses_endpoints.h"

#include "core/json.h"
#include "server/base/answer_schema.h"
#include "server/responses/response_request.h"
#include "server/responses/responses.h"
#include "server/responses/stored_responses.h"

namespace pagoda {
namespace {

using nlohmann::json;

json response_schema() {
  return object_schema({{"id", text_schema()},
                        {"object", {{"const", "response"}}},
                        {"created_at", count_schema()},
                        {"model", text_schema()},
                        {"status", {{"enum", {"completed", "incomplete"}}}},
                        {"output", list_schema({{"type", "object"}})},
                        {"usage", {{"type", "object"}}}});
}

json deleted_response_schema() {
  return object_schema({{"id", text_schema()},
                        {"object", {{"const", "response.deleted"}}},
                        {"deleted", {{"type", "boolean"}}}});
}

json response_tokens_schema() {
  return object_schema(
      {{"object", {{"const", "response.input_tokens"}}}, {"input_tokens", count_schema()}});
}

json item_list_schema() {
  return object_schema({{"object", {{"const", "list"}}},
                        {"data", list_schema({{"type", "object"}})},
                        {"first_id", text_or_null_schema()},
                        {"last_id", text_or_null_schema()},
                        {"has_more", {{"type", "boolean"}}}});
}

constexpr Endpoint kResponsesEndpoints[] = {
    {.path = "/v1/responses",
     .read = handle_responses,
     .generates = true,
     .operation_id = "createResponse",
     .summary = "Answers a conversation with items: messages, calls of tools, thoughts",
     .request_schema = {"ResponseRequest", response_request_schema},
     .answer_schema = {"ResponseObject", response_schema}},
    {.path = "/v1/responses/input_tokens",
     .read = handle_response_count,
     .operation_id = "countResponseTokens",
     .summary = "How many tokens the prompt of such a response has",
     .request_schema = {"ResponseRequest", response_request_schema},
     .answer_schema = {"ResponseTokens", response_tokens_schema}},
    {.path = "/v1/responses/{response_id}",
     .tell = stored_response,
     .erase = delete_response,
     .operation_id = "getResponse",
     .summary = "A response that is stored",
     .answer_schema = {"ResponseObject", response_schema},
     .erased_schema = {"DeletedResponse", deleted_response_schema}},
    {.path = kInputItemsPath,
     .read = handle_input_items,
     .is_read_by_get = true,
     .operation_id = "getResponseInput",
     .summary = "The items that a stored response answers",
     .answer_schema = {"ItemList", item_list_schema},
     .query_parameters = item_page_parameters},
};

constexpr UnservedPath kUnservedPaths[] = {
    {"/v1/responses/{response_id}/cancel",
     "only responses of 'background' can be cancelled, and no response runs in the background"},
    {"/v1/responses/compact",
     "OpenAI compacts a conversation to a text that only its models read; send the items, or a "
     "summary of them"},
};

}  // namespace

EndpointTable responses_endpoints() {
  return {.endpoints = kResponsesEndpoints, .unserved = kUnservedPaths};
}

}  // namespace pagoda

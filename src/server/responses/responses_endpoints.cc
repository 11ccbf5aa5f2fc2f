#include "server/responses/responses_endpoints.h"

#include "core/json.h"
#include "server/base/answer_schema.h"
#include "server/responses/response_request.h"
#include "server/responses/responses.h"

namespace pagoda {
namespace {

using nlohmann::json;

json response_schema() {
  return object_schema({{"id", text_schema()},
                        {"object", {{"const", "response"}}},
                        {"created_at", count_schema()},
                        {"model", text_schema()},
                        {"status", {{"enum", {"completed", "incomplete"}}}},
                        {"output", {{"type", "array"}}},
                        {"usage", {{"type", "object"}}}});
}

constexpr Endpoint kResponsesEndpoints[] = {
    {.path = "/v1/responses",
     .read = handle_responses,
     .generates = true,
     .operation_id = "createResponse",
     .summary = "Answers a conversation with items: messages, calls of tools, thoughts",
     .request_schema = {"ResponseRequest", response_request_schema},
     .answer_schema = {"Response", response_schema}},
    {.path = "/v1/responses/{response_id}",
     .tell = stored_response,
     .erase = delete_response,
     .operation_id = "getResponse",
     .summary = "A response that is stored",
     .answer_schema = {"Response", response_schema}},
};

}  // namespace

EndpointTable responses_endpoints() {
  return {kResponsesEndpoints};
}

}  // namespace pagoda

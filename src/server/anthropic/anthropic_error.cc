#include "server/anthropic/anthropic_error.h"

#include <string_view>

#include "core/json.h"
#include "server/base/answer_schema.h"

namespace pagoda {
namespace {

using nlohmann::json;

// Anthropic's clients ask their tool runner's requests with it, and again without it where an error
// has these details.
constexpr const char* kThreadField = "thread";

std::string_view type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

}  // namespace

json anthropic_error(const ApiError& error, std::string_view request_id) {
  json body = {{"type", "error"},
               {"error", {{"type", type_of(error.status)}, {"message", shown_message(error)}}},
               {"request_id", request_id}};
  if (error.param == kThreadField) {
    body["error"]["details"] = {{"error_code", "thread_unsupported_request"},
                                {"unsupported", {kThreadField}}};
  }
  return body;
}

std::string anthropic_error_body(const ApiError& error, std::string_view request_id) {
  return json_text(anthropic_error(error, request_id));
}

json anthropic_error_schema() {
  return object_schema(
      {{"type", {{"const", "error"}}},
       {"error", object_schema({{"type", text_schema()}, {"message", text_schema()}})},
       {"request_id", text_schema()}});
}

}  // namespace pagoda

#include "server/base/api_error.h"

#include "core/json.h"
#include "core/utf8.h"

namespace pagoda {
namespace {

nlohmann::json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::json(nullptr) : nlohmann::json(text);
}

// The bound of a message, which may quote a client's text of any length.
constexpr std::size_t kMaxMessageBytes = 1000;

}  // namespace

std::string_view ApiError::type() const {
  if (status == 429) return "rate_limit_error";
  if (status == 503) return "service_unavailable_error";
  if (status >= 500) return "server_error";
  return "invalid_request_error";
}

ApiError bad_request(std::string param, std::string message, std::string code) {
  return {400, std::move(message), std::move(param), std::move(code)};
}

ApiError api_error(const Status& status, std::string param) {
  if (param.empty()) param = status.field();
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kUnsupported:
      return {400, status.message(), std::move(param), status.reason()};
    case StatusCode::kNotFound:
      return {404, status.message(), std::move(param), status.reason()};
    case StatusCode::kResourceExhausted:
      return {429, status.message(), "", "rate_limit_exceeded"};
    case StatusCode::kUnavailable:
    case StatusCode::kCancelled:
      return {503, status.message(), "", "service_unavailable"};
    default:
      return {500, status.message(), "", "internal_error"};
  }
}

std::string shown_message(const ApiError& error) {
  if (error.message.size() <= kMaxMessageBytes) return error.message;
  return std::string(beginning_of(error.message, kMaxMessageBytes)) + "...";
}

std::string error_body(const ApiError& error) {
  nlohmann::json body;
  body["error"] = {{"message", shown_message(error)},
                   {"type", error.type()},
                   {"param", text_or_null(error.param)},
                   {"code", text_or_null(error.code)}};
  // The message may quote a client's invalid UTF-8, which json_text() replaces.
  return json_text(body);
}

}  // namespace pagoda

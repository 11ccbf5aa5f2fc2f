#include "server/base/api_error.h"

#include <new>

#include "core/json.h"
#include "core/log.h"
#include "core/start_thread.h"
#include "core/utf8.h"

namespace pagoda {
namespace {

nlohmann::json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::json(nullptr) : nlohmann::json(text);
}

// A message may quote what the client sent, however long that is.
constexpr std::size_t kMaxMessageBytes = 1000;

std::string clipped(std::string message) {
  if (message.size() <= kMaxMessageBytes) return message;
  message.resize(beginning_of(message, kMaxMessageBytes).size());
  return message + "...";
}

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

std::string error_body(const ApiError& error) {
  nlohmann::json body;
  body["error"] = {{"message", clipped(error.message)},
                   {"type", error.type()},
                   {"param", text_or_null(error.param)},
                   {"code", text_or_null(error.code)}};
  // The message may quote what is not UTF-8.
  return json_text(body);
}

HttpResponse error_response(const ApiError& error) {
  HttpResponse response{.status = error.status, .body = error_body(error)};
  if (error.status == 429 || error.status == 503) {
    response.headers.emplace_back("Retry-After", "1");
  }
  if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

namespace {

HttpResponse response_of(std::string_view what, const std::exception& error) {
  log_error("[server] {}: {}", what, error.what());
  const bool has_no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  if (has_no_memory || dynamic_cast<const NoThread*>(&error) != nullptr) {
    return error_response({503,
                           fmt::format("the server has no {} left for this request: try again",
                                       has_no_memory ? "memory" : "thread"),
                           "", "service_unavailable"});
  }
  return error_response({500, "the server failed to answer this request", "", "internal_error"});
}

}  // namespace

HttpResponse failure_response(std::string_view what, const std::exception& error) {
  try {
    return response_of(what, error);
  } catch (const std::bad_alloc&) {
    return {.status = 503, .content_type = ""};  // without a text, for which there is no memory
  }
}

void count_text(HttpResponse& response, const std::shared_ptr<MemoryAccount>& held) {
  if (response.shared_body) return;
  Result<SharedText> text = HeldText::make(held, std::move(response.body));
  if (!text.ok()) {
    response = error_response(api_error(text.status()));
    text = HeldText::make(held, std::move(response.body));
  }
  response.shared_body = std::move(text).value();
}

}  // namespace pagoda

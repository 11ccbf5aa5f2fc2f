// Errors as OpenAI's API shapes them: {"error": {"message", "type", "param", "code"}}.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "core/status.h"
#include "server/base/http_message.h"

namespace pagoda {

struct ApiError {
  int status = 400;  // HTTP's
  std::string message;
  std::string param;  // the field at fault; "": none, null in JSON
  std::string code;   // for programs to tell errors apart; "": null in JSON

  std::string_view type() const;  // follows from the status
};

// A value, or the error that a client is told: Result's face, with an ApiError for a Status.
template <typename T>
class [[nodiscard]] ApiResult {
 public:
  ApiResult(T value) : content_(std::move(value)) {}         // NOLINT: converts like Result
  ApiResult(ApiError error) : content_(std::move(error)) {}  // NOLINT

  bool ok() const { return std::holds_alternative<T>(content_); }
  // Returns the error. REQUIRES: !ok().
  const ApiError& error() const& { return std::get<ApiError>(content_); }
  ApiError&& error() && { return std::get<ApiError>(std::move(content_)); }
  // Returns the value. REQUIRES: ok().
  T& operator*() & { return std::get<T>(content_); }
  const T& operator*() const& { return std::get<T>(content_); }
  T&& operator*() && { return std::get<T>(std::move(content_)); }
  T* operator->() { return &**this; }
  const T* operator->() const { return &**this; }

 private:
  std::variant<T, ApiError> content_;
};

// Makes the error for a request that is wrong.
ApiError bad_request(std::string param, std::string message, std::string code = "");
// Translates an error of the engine or the text layer: 400, 404, 429 or 503 with Retry-After, or
// 500 by the status' code. `param`: the field at fault, where the status does not say it.
ApiError api_error(const Status& status, std::string param = "");

// Logs what has stopped `what`, the work on a request, and returns its answer: 503 where there was
// no memory or no thread for it, 500 for anything else.
HttpResponse failure_response(std::string_view what, const std::exception& error);

std::string error_body(const ApiError& error);
HttpResponse error_response(const ApiError& error);
// Makes a response's text one that counts, in a request's account. A response whose text has no room
// becomes the error that says so.
void count_text(HttpResponse& response, const std::shared_ptr<MemoryAccount>& held);

}  // namespace pagoda

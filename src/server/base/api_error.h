// ApiError: what is wrong with a request, as a value. It is written when it is sent, since each API
// has its own shape for errors (server/base/error_response.h).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "core/status.h"

namespace pagoda {

struct ApiError {
  int status = 400;  // HTTP status
  std::string message;
  std::string param;  // the field at fault; "": none (null in JSON)
  std::string code;   // identifies the error for programs; "": none (null in JSON)

  std::string_view type() const;  // OpenAI's error type, derived from the status
};

// A value, or the error for the client: like Result, with an ApiError in place of a Status.
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

// Makes the error for an invalid request.
ApiError bad_request(std::string param, std::string message, std::string code = "");
// Translates an error of the engine or the text layer, by its code: to 400, 404, 429, 503 or 500.
// `param`: the field at fault, if the status does not name it.
ApiError api_error(const Status& status, std::string param = "");

// Returns the message. A very long one is cut off, since it may quote the client's text.
std::string shown_message(const ApiError& error);
// Returns a body in OpenAI's shape: {"error": {"message", "type", "param", "code"}}.
std::string error_body(const ApiError& error);

}  // namespace pagoda

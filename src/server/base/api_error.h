// ApiError: what is wrong with a request, as a value. Each API has its own shape for one, in which it
// is written last (server/base/error_response.h).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "core/status.h"

namespace pagoda {

struct ApiError {
  int status = 400;  // HTTP's
  std::string message;
  std::string param;  // the field at fault; "": none, null in JSON
  std::string code;   // for programs to tell errors apart; "": null in JSON

  std::string_view type() const;  // OpenAI's; follows from the status
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

// Returns the message, cut off where it quotes too much of what the client sent.
std::string shown_message(const ApiError& error);
// Returns the body that tells of it: {"error": {"message", "type", "param", "code"}}, OpenAI's shape.
std::string error_body(const ApiError& error);

}  // namespace pagoda

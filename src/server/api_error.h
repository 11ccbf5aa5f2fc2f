// Errors as OpenAI's API shapes them: {"error": {"message", "type", "param", "code"}}.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "core/status.h"
#include "server/http_message.h"

namespace pagoda {

struct ApiError {
  int status = 400;  // HTTP's
  std::string message;
  std::string param;  // the field at fault; "": none, null in JSON
  std::string code;   // for programs to tell errors apart; "": null in JSON

  std::string_view type() const;  // follows from the status
};

template <typename T>
using ApiResult = std::variant<T, ApiError>;

// What the client sent is wrong.
ApiError bad_request(std::string param, std::string message, std::string code = "");
// From the engine or the text layer: 400, 404, 429 or 503 with Retry-After, or 500 by the status'
// code.
ApiError api_error(const Status& status, std::string param = "");

std::string error_body(const ApiError& error);
HttpResponse error_response(const ApiError& error);

}  // namespace pagoda

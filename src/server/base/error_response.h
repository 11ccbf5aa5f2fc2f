// Responses that report errors. A response holds its error as a value until it is sent. Then the
// API of the request's path writes the error in its own shape.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/base/api_error.h"
#include "server/base/http_message.h"

namespace pagoda {

// The request that an error answers, as far as it is known.
struct FailedRequest {
  std::string_view path;          // "": not known
  std::string_view request_id;    // HttpRequest::request_id
  bool is_for_anthropic = false;  // HttpRequest::is_for_anthropic()
};

// A function that returns an error as a body, in the shape of the API that the request is for.
// Thread-safe.
using ErrorWriter = std::function<std::string(const FailedRequest&, const ApiError&)>;

HttpResponse error_response(ApiError error);

// Logs the error that stopped `what`, the work on a request. Returns the response: 503 if memory or
// a thread was lacking, 500 for any other error.
HttpResponse failure_response(std::string_view what, const std::exception& error);

// Writes the error that a response holds, if any, as its body: an empty one if no memory is left.
void write_error(HttpResponse& response, const ErrorWriter& writer, const FailedRequest& request);

// Moves a response's text into one that counts in a request's account. If the account has no room
// for the text, the response becomes an error that says so.
void count_text(HttpResponse& response, const std::shared_ptr<MemoryAccount>& held,
                const ErrorWriter& writer, const FailedRequest& request);

}  // namespace pagoda

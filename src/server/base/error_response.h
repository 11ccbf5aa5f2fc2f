// Responses that tell of errors. They hold the error as a value until they are sent: the API of the
// request's path then writes it.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/base/api_error.h"
#include "server/base/http_message.h"

namespace pagoda {

// Returns the body that tells of an error in the API of a path; "": the path is not known.
// Thread-safe.
using ErrorWriter = std::function<std::string(std::string_view path, const ApiError&)>;

HttpResponse error_response(ApiError error);

// Logs what has stopped `what`, the work on a request, and returns its answer: 503 where there was
// no memory or no thread for it, 500 for anything else.
HttpResponse failure_response(std::string_view what, const std::exception& error);

// Writes the error that a response holds, if it does; without a text where no memory is left.
void write_error(HttpResponse& response, const ErrorWriter& writer, std::string_view path);

// Makes a response's text one that counts, in a request's account. A response whose text has no room
// becomes the error that says so.
void count_text(HttpResponse& response, const std::shared_ptr<MemoryAccount>& held,
                const ErrorWriter& writer, std::string_view path);

}  // namespace pagoda

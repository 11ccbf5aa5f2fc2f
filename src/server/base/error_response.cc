#include "server/base/error_response.h"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "core/log.h"
#include "core/start_thread.h"

namespace pagoda {

HttpResponse error_response(ApiError error) {
  HttpResponse response{.status = error.status};
  if (error.status == 429 || error.status == 503) {
    response.headers.emplace_back("Retry-After", "1");
  }
  if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  response.error = std::move(error);
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
    return {.status = 503, .content_type = ""};  // there is no memory for a text
  }
}

void write_error(HttpResponse& response, const ErrorWriter& writer, const FailedRequest& request) {
  if (!response.error) return;
  try {
    response.body = writer(request, *response.error);
  } catch (const std::bad_alloc&) {
    response.content_type = "";
  }
}

void count_text(HttpResponse& response, const std::shared_ptr<MemoryAccount>& held,
                const ErrorWriter& writer, const FailedRequest& request) {
  if (response.shared_body) return;
  Result<SharedText> text = HeldText::make(held, std::move(response.body));
  if (!text.ok()) {
    response = error_response(api_error(text.status()));
    write_error(response, writer, request);
    text = HeldText::make(held, std::move(response.body));
  }
  response.shared_body = std::move(text).value();
}

}  // namespace pagoda

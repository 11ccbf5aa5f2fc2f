// Router: finds the endpoint of a request, after checking who may ask (access.h). Thread-safe.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/api_error.h"
#include "server/base/error_response.h"
#include "server/base/http_message.h"
#include "server/generation/api_service.h"
#include "server/http/access.h"
#include "server/http/access_log.h"

namespace pagoda {

struct RouterOptions {
  std::vector<ApiKey> api_keys;              // empty: no key is needed
  std::vector<std::string> allowed_origins;  // of pages besides the server's own; "*": all pages
  std::vector<std::string> allowed_hosts;    // names of the server; see AllowedHosts
  // The path below which a proxy passes requests on, such as "/llm"; see ServerOptions.
  std::string root_path;
};

// Returns the path below `root_path`, where a proxy serves this ("": no proxy does), without a slash
// at its end. If the proxy has already removed `root_path`, only the slash is removed.
std::string below_root(std::string_view root_path, std::string_view path);

// Returns an error as a body, in the shape of the API that the request is for. `root_path`: as
// above.
std::string error_body_for(std::string_view root_path, const FailedRequest& request,
                           const ApiError& error);

class Router {
 public:
  Router(ApiService& service, const RouterOptions& options);

  // Returns the answer to a request that is refused for its header: its client, its target or its
  // form. Returns nullopt if the body is to be read. If an API key is needed, stores its client in
  // `head`, even if the request is refused for another reason.
  std::optional<HttpResponse> refuse(HttpRequest& head) const;

  // Answers a request. The text workers answer requests with a body, so these replies are pending.
  // Requests about the server are answered at once. REQUIRES: refuse() returned nullopt for it.
  HttpReply handle(HttpRequest request, const Wake& wake) const;

  // Refuses all later requests with a body, and /readyz, with a 503 `draining`. Endpoints that
  // describe the server go on. Thread-safe.
  void drain() { draining_ = true; }

  // Returns the path of the endpoint that a request's path belongs to, or "none".
  std::string_view route_of(std::string_view path) const;
  // Counts an answer, also a refusal, in the metrics.
  void count_answer(const AccessRecord& record) const;

 private:
  std::optional<ApiError> error_of_head(HttpRequest& head, const std::string& path) const;
  HttpReply route(HttpRequest request, const Wake& wake) const;
  HttpReply read_body(HttpRequest request, const Wake& wake) const;

  ApiService& service_;
  ApiKeys api_keys_;
  Cors cors_;
  AllowedHosts allowed_hosts_;
  std::string root_path_;
  SharedText page_, gzipped_page_, openapi_document_;
  std::atomic<bool> draining_ = false;
};

}  // namespace pagoda

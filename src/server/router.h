// Router: from a request to its endpoint, past what says who may ask (access.h). Thread-safe.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/api_error.h"
#include "server/base/http_message.h"
#include "server/generation/api_service.h"
#include "server/http/access.h"
#include "server/http/access_log.h"

namespace pagoda {

struct RouterOptions {
  std::vector<ApiKey> api_keys;              // none: everybody may ask
  std::vector<std::string> allowed_origins;  // of pages besides the server's own; "*": all
  std::vector<std::string> allowed_hosts;    // names of the server; see AllowedHosts
  // Below which a proxy passes requests on, such as "/llm"; see ServerOptions.
  std::string root_path;
};

// Returns the path that a request for `path` asks for, whether a proxy that serves `root_path`
// ("": none) has taken that away or not.
std::string below_root(std::string_view root_path, std::string_view path);

class Router {
 public:
  Router(ApiService& service, const RouterOptions& options);

  // Returns the answer to a request that is refused for its header: for the client that asks, for
  // what it asks, or for the form. Returns nothing where the rest of it is to be read. Where a key
  // is needed, says in `head` which client has brought it, whatever comes of the request.
  std::optional<HttpResponse> refuse(HttpRequest& head) const;

  // Answers a request. The text workers read the bodies: all that they answer is known later, what
  // tells of the server at once. REQUIRES: refuse() was asked of it, and let it pass.
  HttpReply handle(HttpRequest request, const Wake& wake) const;

  // Refuses with a 503 `draining`, from here on, all requests with a body, and /readyz; what tells
  // of the server goes on. Thread-safe.
  void drain() { draining_ = true; }

  // Returns the body that tells of an error in the API of a request's path; in OpenAI's shape where
  // nothing is there. Thread-safe.
  std::string error_body_for(std::string_view path, const ApiError& error) const;
  // Returns the endpoint's path for a request's, or "none".
  std::string_view route_of(std::string_view path) const;
  // Counts an answer, refusals too, in the metrics.
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
  SharedText page_, openapi_document_;
  std::atomic<bool> draining_ = false;
};

}  // namespace pagoda

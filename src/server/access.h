// Who may ask: API keys, and cross-origin requests of browsers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http_message.h"

namespace pagoda {

// "Authorization: Bearer K" against the accepted keys. The time it takes tells nothing of where a
// wrong key differs: keys are compared by their SHA-256 digests, all of them, whole.
class ApiKeys {
 public:
  explicit ApiKeys(const std::vector<std::string>& keys);

  // True for every request where there are no keys.
  bool accept(const HttpRequest& request) const;

 private:
  std::vector<std::string> digests_;
};

// /v1/* and the two endpoints that show the tokenizer, as in vLLM; health, metrics and the page
// stay open.
bool needs_api_key(std::string_view path);

// Cross-origin resource sharing (https://fetch.spec.whatwg.org/#http-cors-protocol). "*" allows
// every origin.
class Cors {
 public:
  explicit Cors(std::vector<std::string> allowed_origins);

  // For the answer to `request`; empty without an Origin that is allowed.
  HttpHeaders headers(const HttpRequest& request) const;
  bool is_preflight(const HttpRequest& request) const;
  HttpResponse preflight(const HttpRequest& request) const;

 private:
  bool allows(std::string_view origin) const;

  std::vector<std::string> allowed_origins_;
  bool allows_all_ = false;
};

}  // namespace pagoda

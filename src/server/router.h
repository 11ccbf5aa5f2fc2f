// Router: from a request to its endpoint, through API keys and CORS. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "server/access.h"
#include "server/api_service.h"
#include "server/http_message.h"

namespace pagoda {

class Router {
 public:
  Router(ApiService& service, const std::vector<std::string>& api_keys,
         std::vector<std::string> allowed_origins);

  HttpReply handle(const HttpRequest& request, const Wake& wake) const;

 private:
  HttpReply route(const HttpRequest& request, const Wake& wake) const;

  ApiService& service_;
  ApiKeys api_keys_;
  Cors cors_;
  std::string openapi_document_;
};

}  // namespace pagoda

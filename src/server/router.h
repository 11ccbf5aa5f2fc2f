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

  // What an endpoint reads of a body, the text workers read: all that they answer is known later,
  // what tells of the server at once.
  HttpReply handle(HttpRequest request, const Wake& wake) const;

 private:
  HttpReply route(HttpRequest request, const Wake& wake) const;
  HttpReply read_body(HttpRequest request, const Wake& wake) const;

  ApiService& service_;
  ApiKeys api_keys_;
  Cors cors_;
  std::string openapi_document_;
};

}  // namespace pagoda

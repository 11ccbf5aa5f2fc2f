// ServerFacts: what the handlers of GET and DELETE answer from.
#pragma once

#include <string>
#include <string_view>

#include "server/base/http_message.h"
#include "server/generation/api_service.h"

namespace pagoda {

struct ServerFacts {
  ApiService& service;
  const SharedText& page;
  const SharedText& gzipped_page;
  const SharedText& openapi_document;
  std::string parameter;         // the value of the path's parameter, if it has one
  std::string client;            // HttpRequest::client
  std::string_view accept = {};  // these two: headers of the request
  std::string_view accept_encoding = {};
  bool is_for_anthropic = false;  // HttpRequest::is_for_anthropic()
};

}  // namespace pagoda

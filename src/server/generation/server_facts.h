// ServerFacts: what GET and DELETE are answered from.
#pragma once

#include <string>

#include "server/base/http_message.h"
#include "server/generation/api_service.h"

namespace pagoda {

// The facts that endpoints about the server answer from.
struct ServerFacts {
  ApiService& service;
  const SharedText& page;
  const SharedText& openapi_document;
  std::string parameter;  // where the path has one, what stands in its place
  std::string client;     // HttpRequest::client
};

}  // namespace pagoda

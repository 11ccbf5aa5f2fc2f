// The endpoints: one table, from which the router answers and /openapi.json is written.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "server/api_service.h"
#include "server/http_message.h"

namespace pagoda {

// The facts that endpoints about the server answer from.
struct ServerFacts {
  const ApiService& service;
  const std::string& root_path;
  const std::string& openapi_document;
  std::string model;  // where the path has one
};

struct Endpoint {
  std::string_view path;  // where it ends with kModelParameter, any text that is not empty is one
  // Answers GET and HEAD, at once; null: POST, whose body a text worker reads.
  HttpResponse (*tell)(const ServerFacts& facts) = nullptr;
  HttpReply (*read)(ApiService& service, const HttpRequest& request, const Wake& wake) = nullptr;
  bool generates = false;  // so that it is refused while the queue has no room; it can stream

  // In /openapi.json: names of schemas, "" for a body of that type without one.
  std::string_view operation_id;
  std::string_view summary;
  std::string_view request_schema;
  std::string_view answer_schema;
  std::string_view answer_type = "application/json";

  std::string_view methods() const { return tell == nullptr ? "POST" : "GET, HEAD"; }
};
inline constexpr std::string_view kModelParameter = "{model}";

std::span<const Endpoint> endpoints();
// Returns null for a path that the table lacks.
const Endpoint* find_endpoint(std::string_view path);
// Returns what stands in the parameter's place, decoded; "" where the endpoint has none.
std::string model_in_path(const Endpoint& endpoint, std::string_view path);

}  // namespace pagoda

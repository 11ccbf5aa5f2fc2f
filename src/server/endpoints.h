// The endpoints: one table, from which the router answers and /openapi.json is written.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "server/base/http_message.h"
#include "server/generation/server_facts.h"

namespace pagoda {

struct Endpoint {
  // A path may end with a parameter, such as {model}: any text that is not empty.
  std::string_view path;
  // Answers GET and HEAD, at once; null: POST, whose body a text worker reads.
  HttpResponse (*tell)(const ServerFacts& facts) = nullptr;
  HttpResponse (*erase)(const ServerFacts& facts) = nullptr;  // answers DELETE, beside `tell`
  HttpReply (*read)(ApiService& service, const HttpRequest& request, const Wake& wake) = nullptr;
  bool generates = false;  // so that it is refused while the queue has no room
  bool is_whole = false;   // where it generates: its answer is never a stream
  bool tells_readiness = false;
  bool asks_for_no_key = false;  // it answers everybody, keys or not

  // In /openapi.json: names of schemas, "" for a body of that type without one.
  std::string_view operation_id;
  std::string_view summary;
  std::string_view request_schema;
  std::string_view answer_schema;
  std::string_view answer_type = "application/json";

  std::string_view methods() const {
    if (tell == nullptr) return "POST";
    return erase == nullptr ? "GET, HEAD" : "GET, HEAD, DELETE";
  }
  // Returns whether it is refused while the server drains: what only tells of it is not.
  bool only_while_ready() const { return read != nullptr || tells_readiness; }
  // Returns the name of the path's parameter; "" where it has none.
  std::string_view parameter() const;
};

std::span<const Endpoint> endpoints();
// Returns null for a path that the table lacks.
const Endpoint* find_endpoint(std::string_view path);
// Returns whether a path is for those alone who bring an API key, where there are any: nothing there
// tells others what is not theirs, not even that it is missing.
bool needs_api_key(std::string_view path);
// Returns what stands in the parameter's place, decoded; "" where the endpoint has none.
std::string parameter_in_path(const Endpoint& endpoint, std::string_view path);

}  // namespace pagoda

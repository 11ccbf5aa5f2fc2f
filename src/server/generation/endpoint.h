// Endpoint: a path, what answers there, and what /openapi.json says of it. Each API's room has a table
// of its own; server/endpoints.cc lists the tables.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "server/base/answer_schema.h"
#include "server/base/api_error.h"
#include "server/base/http_message.h"
#include "server/generation/server_facts.h"

namespace pagoda {

// A JSON schema under the name that other schemas know it by. Endpoints with the same name have the
// same function.
struct NamedSchema {
  std::string_view name;  // "": none
  nlohmann::json (*make)() = nullptr;

  bool defined() const { return make != nullptr; }
};

// The shape in which an API tells errors.
struct ErrorFormat {
  std::string (*body)(const ApiError& error) = error_body;  // OpenAI's
  NamedSchema schema = {"Error", error_schema};
};

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

  // In /openapi.json; without a schema there is a body of the type and nothing more is said of it.
  std::string_view operation_id;
  std::string_view summary;
  NamedSchema request_schema;
  NamedSchema answer_schema;
  std::string_view answer_type = "application/json";
  ErrorFormat errors = {};  // its table's

  std::string_view methods() const {
    if (tell == nullptr) return "POST";
    return erase == nullptr ? "GET, HEAD" : "GET, HEAD, DELETE";
  }
  // Returns whether it is refused while the server drains: what only tells of it is not.
  bool only_while_ready() const { return read != nullptr || tells_readiness; }
  // Returns the name of the path's parameter; "" where it has none.
  std::string_view parameter() const;
};

// Another path of an endpoint, where clients of other servers look for it.
struct EndpointAlias {
  std::string_view path;
  std::string_view of;  // the path of an endpoint of its table
  std::string_view operation_id;
  std::string_view summary;
};

// The endpoints of an API.
struct EndpointTable {
  std::span<const Endpoint> endpoints;
  std::span<const EndpointAlias> aliases = {};
  ErrorFormat errors = {};
};

}  // namespace pagoda

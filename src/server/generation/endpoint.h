// Endpoint: a path, its handlers, and its description in /openapi.json. Each API's folder has a
// table of endpoints; server/endpoints.cc lists the tables.
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

// A JSON schema, and the name by which other schemas refer to it. Schemas of the same name must
// have the same function.
struct NamedSchema {
  std::string_view name;  // "": none
  nlohmann::json (*make)() = nullptr;

  bool defined() const { return make != nullptr; }
};

// The shape of an API's errors.
struct ErrorFormat {
  // Returns an error as a body; of OpenAI's shape if nothing else is said.
  std::string (*body)(const ApiError& error, std::string_view request_id) =
      [](const ApiError& error, std::string_view) { return error_body(error); };
  NamedSchema schema = {"Error", error_schema};
};

// A pattern is a path that may have one parameter, such as {model}: a text that is neither empty nor
// holds a slash. Names of models may hold slashes.

// Returns the name of a pattern's parameter; "" if it has none.
std::string_view parameter_name(std::string_view pattern);
bool fits_pattern(std::string_view pattern, std::string_view path);
// Returns the parameter's value in a path that fits the pattern, decoded; "" if it has none.
std::string parameter_in_path(std::string_view pattern, std::string_view path);

struct Endpoint {
  std::string_view path;  // a pattern
  // Answers GET and HEAD, at once. null: a text worker answers, by `read`.
  HttpResponse (*tell)(const ServerFacts& facts) = nullptr;
  // Answers DELETE, beside `tell`; null: DELETE is not allowed.
  HttpResponse (*erase)(const ServerFacts& facts) = nullptr;
  HttpReply (*read)(ApiService& service, const HttpRequest& request, const Wake& wake) = nullptr;
  bool is_read_by_get = false;  // `read` answers GET and HEAD, instead of POST
  bool generates = false;       // refused at once while the queue is full
  bool is_whole = false;        // only if it generates: answers are never streams
  bool tells_readiness = false;
  bool asks_for_no_key = false;  // answered without an API key

  // The description in /openapi.json. Without a schema, only the body's type is described.
  std::string_view operation_id;
  std::string_view summary;
  NamedSchema request_schema;
  NamedSchema answer_schema;
  NamedSchema erased_schema;                       // what `erase` answers
  nlohmann::json (*query_parameters)() = nullptr;  // OpenAPI's list of them; null: none are read
  std::string_view answer_type = "application/json";
  std::string_view stream_type = "text/event-stream";  // only if answers may be streams
  ErrorFormat errors = {};                             // those of the endpoint's table

  bool takes_get() const { return tell != nullptr || is_read_by_get; }
  std::string_view methods() const {
    if (!takes_get()) return "POST";
    return erase == nullptr ? "GET, HEAD" : "GET, HEAD, DELETE";
  }
  // Returns whether requests are refused while the server drains. Those that only ask about the
  // server are not, except about readiness.
  bool only_while_ready() const { return read != nullptr || tells_readiness; }
};

// Another path of an endpoint, which clients of other servers use.
struct EndpointAlias {
  std::string_view path;
  std::string_view of;  // the path of an endpoint in the same table
  std::string_view operation_id;
  std::string_view summary;
};

// A path of other servers that is not served, and what a client is told instead of an answer.
struct UnservedPath {
  std::string_view path;  // a pattern
  std::string_view why;
};

// The endpoints of an API.
struct EndpointTable {
  std::span<const Endpoint> endpoints;
  std::span<const EndpointAlias> aliases = {};
  std::span<const UnservedPath> unserved = {};
  ErrorFormat errors = {};
  // All paths that begin so have these errors, also where there is no endpoint; "": none.
  std::string_view errors_below = {};
};

}  // namespace pagoda

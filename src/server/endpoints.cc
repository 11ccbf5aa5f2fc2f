#include "server/endpoints.h"

#include <algorithm>
#include <vector>

#include "server/anthropic/anthropic_endpoints.h"
#include "server/information/information_endpoints.h"
#include "server/llama_cpp/llama_cpp_endpoints.h"
#include "server/ollama/ollama_endpoints.h"
#include "server/openai/openai_endpoints.h"
#include "server/page/page_endpoints.h"
#include "server/pooling/pooling_endpoints.h"
#include "server/responses/responses_endpoints.h"

namespace pagoda {
namespace {

// Returns the endpoint of a table that an alias refers to, at the alias's path.
Endpoint endpoint_at(const EndpointAlias& alias, const EndpointTable& table) {
  Endpoint endpoint = *std::ranges::find(table.endpoints, alias.of, &Endpoint::path);
  endpoint.path = alias.path;
  endpoint.operation_id = alias.operation_id;
  endpoint.summary = alias.summary;
  return endpoint;
}

std::vector<EndpointTable> tables() {
  return {page_endpoints(),      information_endpoints(), openai_endpoints(),
          responses_endpoints(), anthropic_endpoints(),   ollama_endpoints(),
          llama_cpp_endpoints(), pooling_endpoints()};
}

}  // namespace

std::span<const Endpoint> endpoints() {
  static const std::vector<Endpoint> all = [] {
    std::vector<Endpoint> joined;
    for (const EndpointTable& table : tables()) {
      const auto add = [&](Endpoint endpoint) {
        endpoint.errors = table.errors;
        joined.push_back(endpoint);
      };
      for (const Endpoint& endpoint : table.endpoints) add(endpoint);
      for (const EndpointAlias& alias : table.aliases) add(endpoint_at(alias, table));
    }
    return joined;
  }();
  return all;
}

bool needs_api_key(std::string_view path) {
  if (const Endpoint* const endpoint = find_endpoint(path)) return !endpoint->asks_for_no_key;
  return path == "/v1" || path.starts_with("/v1/") || path.starts_with("/api/");
}

const Endpoint* find_endpoint(std::string_view path) {
  for (const Endpoint& endpoint : endpoints()) {
    if (fits_pattern(endpoint.path, path)) return &endpoint;
  }
  return nullptr;
}

ErrorFormat error_format_at(std::string_view path, bool is_for_anthropic) {
  if (is_for_anthropic) return anthropic_endpoints().errors;
  if (const Endpoint* const endpoint = find_endpoint(path)) return endpoint->errors;
  for (const EndpointTable& table : tables()) {
    if (!table.errors_below.empty() && path.starts_with(table.errors_below)) return table.errors;
  }
  return {};
}

std::string_view why_not_served(std::string_view path) {
  for (const EndpointTable& table : tables()) {
    for (const UnservedPath& unserved : table.unserved) {
      if (fits_pattern(unserved.path, path)) return unserved.why;
    }
  }
  return "";
}

}  // namespace pagoda

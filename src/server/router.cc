#include "server/router.h"

#include <algorithm>
#include <iterator>

#include "server/base/error_response.h"
#include "server/base/gzip.h"
#include "server/endpoints.h"
#include "server/openapi_document.h"
#include "server/page/page.h"

namespace pagoda {
namespace {

std::optional<ApiError> error_of_target(const HttpRequest& head, const std::string& path) {
  if (const std::string_view why = why_not_served(path); !why.empty())
    return ApiError{404, fmt::format("{} is not served: {}", path, why), "", "not_found"};
  const Endpoint* const endpoint = find_endpoint(path);
  if (endpoint == nullptr) {
    return ApiError{404, fmt::format("there is nothing at {} {}", head.method, path), "",
                    "not_found"};
  }
  const std::string_view methods = endpoint->methods();
  const bool is_post = methods == "POST";
  const bool is_get = head.method == "GET" || head.method == "HEAD" ||
                      (head.method == "DELETE" && endpoint->erase != nullptr);
  if (is_post ? head.method != "POST" : !is_get) {
    return ApiError{405, fmt::format("{}: expected {}, got {}", path, methods, head.method), "",
                    "method_not_allowed"};
  }
  // An empty body may have any type: clients differ in what they send.
  const bool has_body = head.header("content-length") != "0";
  if (const auto type = head.header("content-type"); is_post && has_body && !is_json_type(type)) {
    return ApiError{415, fmt::format("Content-Type: expected application/json, got {}", type), "",
                    "unsupported_media_type"};
  }
  const auto encoding = head.header("content-encoding");
  if (is_post && has_body && !encoding.empty() && encoding != "identity") {
    return ApiError{415, fmt::format("Content-Encoding: expected none, got {}", encoding), "",
                    "unsupported_media_type"};
  }
  return {};
}

}  // namespace

std::string below_root(std::string_view root_path, std::string_view path) {
  std::string_view below = path;
  if (below.starts_with(root_path)) below.remove_prefix(root_path.size());
  if (below.empty()) return "/";
  if (below.front() != '/') below = path;
  if (below.size() > 1 && below.ends_with('/')) below.remove_suffix(1);
  return std::string(below);
}

std::string error_body_for(std::string_view root_path, const FailedRequest& request,
                           const ApiError& error) {
  const std::string path = below_root(root_path, request.path);
  return error_format_at(path, request.is_for_anthropic).body(error, request.request_id);
}

Router::Router(ApiService& service, const RouterOptions& options)
    : service_(service),
      api_keys_(options.api_keys),
      cors_(options.allowed_origins),
      allowed_hosts_(options.allowed_hosts),
      root_path_(options.root_path),
      page_(HeldText::for_good(page_html(options.root_path))),
      gzipped_page_(HeldText::for_good(gzip(page_->view()))),
      openapi_document_(HeldText::for_good(
          openapi_document(service, !options.api_keys.empty(), options.root_path))) {}

std::optional<HttpResponse> Router::refuse(HttpRequest& head) const {
  const std::string path = below_root(root_path_, head.path);
  const std::optional<ApiError> error = error_of_head(head, path);
  if (!error) return {};
  HttpResponse response = error_response(*error);
  if (error->status == 405) response.headers.emplace_back("Allow", find_endpoint(path)->methods());
  for (auto& header : cors_.headers(head)) response.headers.push_back(std::move(header));
  return response;
}

std::optional<ApiError> Router::error_of_head(HttpRequest& head, const std::string& path) const {
  if (const auto host = head.header("host"); !allowed_hosts_.allow(host)) {
    return ApiError{403,
                    fmt::format("Host: expected an address, localhost or a name given by "
                                "--allowed-hosts, got {}",
                                host),
                    "", "host_not_allowed"};
  }
  if (cors_.refuses(head)) {
    const auto origin = head.header("origin");
    return ApiError{403,
                    fmt::format("Origin: expected this server's own or one given by "
                                "--allowed-origins, got {}",
                                origin.empty() ? "none from a page elsewhere" : origin),
                    "", "origin_not_allowed"};
  }
  // A browser sends no key with its preflight, so the key is not checked.
  if (cors_.is_preflight(head)) return {};
  if (needs_api_key(path)) {
    std::optional<KnownClient> client = api_keys_.client_of(head);
    if (!client) {
      return ApiError{401, "expected a valid API key in 'Authorization: Bearer KEY'", "",
                      "invalid_api_key"};
    }
    head.client = std::move(client->id);
    head.client_name = std::move(client->name);
  }
  if (auto error = error_of_target(head, path)) return error;
  if (draining_ && find_endpoint(path)->only_while_ready())
    return ApiError{503, "the server is ending", "", "draining"};
  return {};
}

HttpReply Router::handle(HttpRequest request, const Wake& wake) const {
  request.path = below_root(root_path_, request.path);
  HttpReply reply = {{}, cors_.headers(request)};
  reply.become(route(std::move(request), wake));
  return reply;
}

void Router::count_answer(const AccessRecord& record) const {
  // Clients may send any number of paths and methods. The metrics keep a line for each, so unknown
  // ones share a name.
  constexpr std::string_view kMethods[] = {"GET", "HEAD", "POST", "DELETE", "OPTIONS"};
  const bool is_known = std::ranges::find(kMethods, record.method) != std::end(kMethods);
  service_.metrics.count_http_answer(route_of(record.path), is_known ? record.method : "other",
                                     record.status, record.seconds);
}

std::string_view Router::route_of(std::string_view path) const {
  const Endpoint* const endpoint =
      path.empty() ? nullptr : find_endpoint(below_root(root_path_, path));
  return endpoint != nullptr ? endpoint->path : "none";
}

HttpReply Router::route(HttpRequest request, const Wake& wake) const {
  if (cors_.is_preflight(request)) return {cors_.preflight(), {}};
  const Endpoint* const endpoint = find_endpoint(request.path);
  if (endpoint->tell == nullptr) return read_body(std::move(request), wake);
  const ServerFacts facts = {.service = service_,
                             .page = page_,
                             .gzipped_page = gzipped_page_,
                             .openapi_document = openapi_document_,
                             .parameter = parameter_in_path(endpoint->path, request.path),
                             .client = request.client,
                             .accept = request.header("accept"),
                             .accept_encoding = request.header("accept-encoding"),
                             .is_for_anthropic = request.is_for_anthropic()};
  return {request.method == "DELETE" ? endpoint->erase(facts) : endpoint->tell(facts), {}};
}

HttpReply Router::read_body(HttpRequest request, const Wake& wake) const {
  const Endpoint& endpoint = *find_endpoint(request.path);
  // If the queue is full, the request is refused before its body is parsed: the server is busy.
  if (endpoint.generates) {
    if (const Status room = service_.model.engine->check_room({}); !room.ok())
      return {error_response(api_error(room)), {}};
  }
  const std::size_t num_bytes = request.body.size();
  // The work refers to the service, not to `this`: it may outlive the router when the server ends.
  auto work = [&service = service_, &endpoint, wake, request = std::move(request)] {
    return endpoint.read(service, request, wake);
  };
  return service_.text_workers.run({.lane = lane_of_text(num_bytes), .num_bytes = num_bytes}, wake,
                                   std::move(work));
}

}  // namespace pagoda

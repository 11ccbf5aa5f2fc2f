#include "server/server.h"

#include <atomic>

#include "server/base/error_response.h"
#include "server/generation/api_service.h"
#include "server/generation/request_trace.h"
#include "server/http/http_listener.h"
#include "server/information/information.h"
#include "server/memory_trimmer.h"
#include "server/router.h"
#include "server/trace_exporter.h"

namespace pagoda {
namespace {

constexpr double kFarewellS = 2;  // time for clients to read the error that ends their answers

RouterOptions router_options(const ServerOptions& options) {
  RouterOptions router{.api_keys = options.api_keys,
                       .allowed_origins = options.allowed_origins,
                       .allowed_hosts = options.allowed_hosts,
                       .root_path = options.root_path};
  router.allowed_hosts.push_back(options.host);
  return router;
}

}  // namespace

struct Server::Impl {
  // The parts that exist once a model is served.
  struct Api {
    Api(ServedModel& model, const std::vector<std::string>& names, const ServerOptions& options,
        std::shared_ptr<RequestMemory> memory)
        : service{model, names, ServerMetrics(names.front()), {}},
          router(service, router_options(options)) {
      service.memory = std::move(memory);
      service.cache_events = options.cache_events;
    }

    ApiService service;
    Router router;
  };

  std::optional<HttpResponse> refuse(HttpRequest& head) const {
    if (traces && head.method == "POST")
      head.trace = RequestTrace::begin(head.header("traceparent"));
    const Api* const current = serving.load();
    if (current != nullptr) return current->router.refuse(head);
    if (below_root(options.root_path, head.path) == "/livez") return live_response();
    return error_response({503, "the model is being loaded", "", "loading"});
  }

  void count(const AccessRecord& record) const {
    const Api* const current = serving.load();
    if (current == nullptr) return;
    current->router.count_answer(record);
    if (record.trace) traces->write(record, current->router.route_of(record.path));
  }

  ServerOptions options;
  std::shared_ptr<RequestMemory> memory;
  std::unique_ptr<Api> api;
  std::atomic<const Api*> serving = nullptr;  // points to `api` once it is ready
  std::unique_ptr<TraceExporter> traces;      // null: no request is traced
  MemoryTrimmer trimmer;
  std::unique_ptr<HttpListener> listener;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

// Ends connections first, because they use the rest. Then the model's part, whose threads may still
// wake a connection. The listener is last, because it runs what these threads post.
Server::~Server() {
  impl_->listener->stop(0);
  impl_->serving = nullptr;
  impl_->api.reset();
}

Result<std::unique_ptr<Server>> Server::listen(const ServerOptions& options) {
  if (options.num_threads < 1) {
    return invalid_argument("[server] threads: expected at least 1, got {}", options.num_threads);
  }
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->memory = std::make_shared<RequestMemory>(options.max_request_memory_bytes);
  if (!options.traces_url.empty()) {
    PAGODA_ASSIGN_OR_RETURN(impl->traces, TraceExporter::start(options.traces_url));
  }
  const ListenerOptions listener_options{
      .host = options.host,
      .port = options.port,
      .path = options.path,
      .tls = options.tls,
      .num_threads = options.num_threads,
      .limits = options.limits,
      .memory = impl->memory,
      .observer = [impl = impl.get()](const AccessRecord& r) { impl->count(r); },
      .log_format = options.log_format,
      .write_error =
          [root_path = options.root_path](const FailedRequest& request, const ApiError& error) {
            return error_body_for(root_path, request, error);
          }};
  HttpGate gate = [impl = impl.get()](HttpRequest& head) { return impl->refuse(head); };
  HttpHandler handler = [impl = impl.get()](HttpRequest request, const Wake& wake) {
    // Probes are not noted, because they come all the time.
    if (request.method == "POST") impl->trimmer.note_request(request.body.size());
    return impl->serving.load()->router.handle(std::move(request), wake);
  };
  PAGODA_ASSIGN_OR_RETURN(
      impl->listener, HttpListener::start(listener_options, std::move(handler), std::move(gate)));
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

void Server::serve(ServedModel& model, const std::vector<std::string>& names) {
  impl_->api = std::make_unique<Impl::Api>(model, names, impl_->options, impl_->memory);
  impl_->serving = impl_->api.get();
}

std::uint16_t Server::port() const {
  return impl_->listener->port();
}

int Server::num_connections() const {
  return impl_->listener->num_connections();
}

void Server::stop(double deadline_s) {
  if (impl_->api) impl_->api->router.drain();
  const bool is_done = impl_->listener->drain(deadline_s);
  if (!is_done && impl_->api) impl_->api->service.model.engine->drain(0);
  impl_->listener->stop(kFarewellS);
}

}  // namespace pagoda

#include "server/server.h"

#include "server/api_service.h"
#include "server/http_listener.h"
#include "server/router.h"

namespace pagoda {
namespace {

constexpr double kFarewellS = 2;  // for clients to take the error that ends their answers

std::vector<std::string> model_names(const ServedModel& model, const ServerOptions& options) {
  if (options.served_model_names.empty()) return {model.name};
  return options.served_model_names;
}

}  // namespace

struct Server::Impl {
  Impl(ServedModel& model, const ServerOptions& options)
      : service{model,
                model_names(model, options),
                ServerMetrics(model_names(model, options).front()),
                {}},
        router(service, options.api_keys, options.allowed_origins) {}

  ApiService service;
  Router router;
  std::unique_ptr<HttpListener> listener;  // goes first: its connections use the rest
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::start(ServedModel& model, const ServerOptions& options) {
  if (options.num_threads < 1) {
    return invalid_argument("[server] threads: expected at least 1, got {}", options.num_threads);
  }
  auto impl = std::make_unique<Impl>(model, options);
  const ListenerOptions listener_options{.host = options.host,
                                         .port = options.port,
                                         .num_threads = options.num_threads,
                                         .limits = options.limits};
  HttpHandler handler = [router = &impl->router](const HttpRequest& request, const Wake& wake) {
    return router->handle(request, wake);
  };
  PAGODA_ASSIGN_OR_RETURN(impl->listener,
                          HttpListener::start(listener_options, std::move(handler)));
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::uint16_t Server::port() const {
  return impl_->listener->port();
}

int Server::num_connections() const {
  return impl_->listener->num_connections();
}

void Server::stop(double deadline_s) {
  if (!impl_->listener->drain(deadline_s)) impl_->service.model.engine->drain(0);
  impl_->listener->stop(kFarewellS);
}

}  // namespace pagoda

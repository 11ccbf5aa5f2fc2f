#include "server/http_listener.h"

#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "server/api_error.h"
#include "server/http_session.h"

namespace pagoda {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// Every connection is a descriptor, and a checkpoint's shards are mapped besides: take what the
// system allows.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    spdlog::debug("[server] the limit of open files stays as it is");
  }
}

Result<tcp::endpoint> resolve(asio::io_context& context, const std::string& host,
                              std::uint16_t port) {
  error_code error;
  const auto address = asio::ip::make_address(host, error);
  if (!error) return tcp::endpoint(address, port);
  tcp::resolver resolver(context);
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (error || found.empty()) {
    return invalid_argument(
        "[server] host {}: expected an address or a name that resolves, got: {}", host,
        error.message());
  }
  return found.begin()->endpoint();
}

}  // namespace

struct HttpListener::Impl {
  Impl(const ListenerOptions& options, HttpHandler handler)
      : limits(options.limits),
        handler(std::move(handler)),
        body_budget(limits.max_total_body_bytes),
        acceptor(asio::make_strand(context)) {}

  Status bind(const ListenerOptions& options);
  asio::awaitable<void> accept_loop();
  void serve(tcp::socket socket);
  void refuse(tcp::socket socket);
  asio::awaitable<void> run_session(std::shared_ptr<HttpSession> session);

  const HttpLimits limits;
  const HttpHandler handler;
  BodyBudget body_budget;
  asio::io_context context;
  tcp::acceptor acceptor;
  std::uint16_t port = 0;
  std::vector<std::thread> threads;

  std::mutex mutex;
  std::condition_variable session_ended;
  std::set<std::shared_ptr<HttpSession>> sessions;
  bool stopping = false;
};

Status HttpListener::Impl::bind(const ListenerOptions& options) {
  PAGODA_ASSIGN_OR_RETURN(const tcp::endpoint endpoint,
                          resolve(context, options.host, options.port));
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) port = acceptor.local_endpoint(error).port();
  if (error) {
    return unavailable("[server] {}:{}: expected an address that is free to listen on, got: {}",
                       options.host, options.port, error.message());
  }
  return ok_status();
}

asio::awaitable<void> HttpListener::Impl::accept_loop() {
  asio::steady_timer pause(acceptor.get_executor());
  while (acceptor.is_open()) {
    error_code error;
    tcp::socket socket(asio::make_strand(context));
    co_await acceptor.async_accept(socket, asio::redirect_error(asio::use_awaitable, error));
    if (!error) {
      serve(std::move(socket));
    } else if (error != asio::error::operation_aborted) {
      // Out of descriptors, most likely: without a pause this would spin until one is free.
      spdlog::warn("[server] accept: {}", error.message());
      pause.expires_after(std::chrono::milliseconds(100));
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
    }
  }
}

void HttpListener::Impl::serve(tcp::socket socket) {
  const auto executor = socket.get_executor();
  std::shared_ptr<HttpSession> session;
  {
    std::lock_guard lock(mutex);
    if (stopping) return;
    if (static_cast<int>(sessions.size()) < limits.max_connections) {
      session = std::make_shared<HttpSession>(std::move(socket), limits, handler, body_budget);
      sessions.insert(session);
    }
  }
  // Without a session the socket has not been moved.
  if (!session) return refuse(std::move(socket));  // NOLINT(bugprone-use-after-move)
  asio::co_spawn(executor, run_session(std::move(session)), asio::detached);
}

// The refusal fits any send buffer, so this does not wait for the client.
void HttpListener::Impl::refuse(tcp::socket socket) {
  const std::string body =
      error_body({503, "too many connections are open", "", "too_many_connections"});
  const std::string bytes = fmt::format(
      "HTTP/1.1 503 {}\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\n\r\n{}",
      reason_phrase(503), body.size(), body);
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(bytes), ignored);
  socket.shutdown(asio::socket_base::shutdown_both, ignored);
}

asio::awaitable<void> HttpListener::Impl::run_session(std::shared_ptr<HttpSession> session) {
  co_await session->run();
  std::lock_guard lock(mutex);
  sessions.erase(session);
  session_ended.notify_all();
}

HttpListener::HttpListener(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<HttpListener>> HttpListener::start(const ListenerOptions& options,
                                                          HttpHandler handler) {
  raise_descriptor_limit();
  auto impl = std::make_unique<Impl>(options, std::move(handler));
  PAGODA_RETURN_IF_ERROR(impl->bind(options));
  asio::co_spawn(impl->acceptor.get_executor(), impl->accept_loop(), asio::detached);
  for (int i = 0; i < options.num_threads; ++i) {
    impl->threads.emplace_back([context = &impl->context] { context->run(); });
  }
  return std::unique_ptr<HttpListener>(new HttpListener(std::move(impl)));
}

HttpListener::~HttpListener() {
  stop(0);
}

std::uint16_t HttpListener::port() const {
  return impl_->port;
}

int HttpListener::num_connections() const {
  std::lock_guard lock(impl_->mutex);
  return static_cast<int>(impl_->sessions.size());
}

void HttpListener::stop(double deadline_s) {
  Impl& impl = *impl_;
  if (impl.threads.empty()) return;
  asio::post(impl.acceptor.get_executor(), [&impl] {
    error_code ignored;
    impl.acceptor.close(ignored);
  });
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(deadline_s);
  const auto none_left = [&impl] { return impl.sessions.empty(); };
  {
    std::unique_lock lock(impl.mutex);
    impl.stopping = true;
    for (const auto& session : impl.sessions) session->drain();
    if (!impl.session_ended.wait_until(lock, until, none_left)) {
      for (const auto& session : impl.sessions) session->close();
      impl.session_ended.wait(lock, none_left);
    }
  }
  // Nothing is left to do: run() returns by itself on every thread.
  for (std::thread& thread : impl.threads) thread.join();
  impl.threads.clear();
}

}  // namespace pagoda
